"""Shows an inspected data directory to people and to programs."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from query_service.storage.inspection import InspectedPartition, Inspection, OtherDirectory

_NUMBERS = ("partition", "rows", "deletions", "versions", "next offset", "bytes")
_HEADINGS = ("store", *_NUMBERS, "kind", "format", "topic id", "all applied at")


def as_json(inspection: Inspection) -> str:
    """Returns one JSON object."""
    return json.dumps(asdict(inspection), indent=2) + "\n"


def as_table(inspection: Inspection) -> str:
    """Returns a table of the partitions with their sum, and what else lies in the directory."""
    partitions = inspection.partitions
    lines = [inspection.directory, ""]
    if partitions:
        lines += _aligned([_HEADINGS, *map(_row, partitions), _sum(partitions)])
    else:
        lines.append("no partitions on disk")
    lines += _others("set aside", inspection.set_aside)
    lines += _others("not readable", inspection.unreadable)
    return "\n".join(lines) + "\n"


def _row(each: InspectedPartition) -> tuple[str, ...]:
    current = datetime.fromtimestamp(each.current_ms / 1000, UTC).isoformat(timespec="milliseconds")
    counts = (each.rows, each.deletions, each.versions, each.next_offset, each.size)
    numbers = (f"{count:,}" for count in counts)
    return (each.store, str(each.partition), *numbers, each.kind, each.format, each.topic_id, current)


def _sum(partitions: Sequence[InspectedPartition]) -> tuple[str, ...]:
    rows = sum(each.rows for each in partitions)
    deletions = sum(each.deletions for each in partitions)
    versions = sum(each.versions for each in partitions)
    size = sum(each.size for each in partitions)
    numbers = (str(len(partitions)), f"{rows:,}", f"{deletions:,}", f"{versions:,}", "", f"{size:,}")
    return ("all", *numbers, "", "", "", "")


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(_cell(index, text, widths[index]) for index, text in enumerate(row)).rstrip() for row in rows]


def _cell(index: int, text: str, width: int) -> str:
    return text.rjust(width) if _HEADINGS[index] in _NUMBERS else text.ljust(width)


def _others(title: str, directories: Sequence[OtherDirectory]) -> list[str]:
    if not directories:
        return []
    return ["", f"{title}:", *(f"  {each.path}  {each.size:,} bytes: {each.reason}" for each in directories)]
