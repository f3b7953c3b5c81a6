"""Writes docs/sources.md from the cases: which input is read, refused or told.

`python -m kit.page FILE` writes it; a test holds that the page is current.
"""

import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path

from kit.case import Case, read_cases

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sources.md"
GROUPS = {
    "postgres": "Tables of PostgreSQL",
    "mariadb": "Tables of MariaDB",
    "changes": "Topics of changes",
    "topics": "Topics of anybody",
    "sql": "Expressions",
}
"""The heading of each directory of cases, in the order of the page."""
NEWER = "superseded_newer"
"""The outcome that raises an alert."""

_INTRODUCTION = """\
# Databases and topics, and the treatment of their records

Databases and producers send more than rows. For each input below there is a case with a real PostgreSQL or MariaDB,
Debezium, Kafka and Spark, which requires one of these: the value is *read* as the database has it, the pipeline is
*refused* before it starts, the record is *set aside* on the dead-letter topic with the reason, or the log, a count or
`statecast doctor` *tells* of it. `make conformance` runs all of them and reports the result of each. Each is a file in
[`tests/conformance/cases`](../tests/conformance/cases); `make reference` generates this page from them.
"""


def page(cases: Sequence[Case]) -> str:
    """Returns the text of the page."""
    by_group = {group: list(each) for group, each in groupby(sorted(cases, key=_order), lambda case: case.group)}
    sections = [_section(heading, by_group[group]) for group, heading in GROUPS.items() if group in by_group]
    pending = [case for case in cases if case.pending]
    return "\n".join([_INTRODUCTION, *sections, *([_not_yet(pending)] if pending else [])])


def answer(case: Case) -> str:
    """Returns how the product answers the input, in a word or two."""
    expected = case.expect
    if expected.refused is not None:
        return f"refused at {expected.refused.at}"
    told = [*expected.log, *expected.doctor, *(each for each in expected.outcomes.values() if NEWER in each)]
    parts = {"read": expected.stores, "set aside": expected.dead_letters, "told": told}
    if expected.dead_letters and not any(expected.stores.values()):
        del parts["read"]
    return ", ".join(word for word, content in parts.items() if content)


def _order(case: Case) -> tuple[int, str]:
    return list(GROUPS).index(case.group), case.name


def _section(heading: str, cases: Sequence[Case]) -> str:
    lines = [f"## {heading}", "", "| case | input | answer | what holds |", "|---|---|---|---|"]
    for case in cases:
        link = f"[{case.title}](../tests/conformance/cases/{case.group}/{case.name}.yaml)"
        cells = (link, case.input, f"{answer(case)}{', not yet' if case.pending else ''}", case.holds)
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    return "\n".join([*lines, ""])


def _not_yet(cases: Sequence[Case]) -> str:
    lines: Iterator[str] = (f"- **{case.title}**: {case.pending}" for case in cases)
    return "\n".join(["## Not yet", "", "These are known, and not as the table says:", "", *lines, ""])


def _cell(text: str) -> str:
    return text.strip().replace("|", "\\|")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(read_cases()), encoding="utf-8")
