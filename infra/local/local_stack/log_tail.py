"""Reads the end of a log."""

from pathlib import Path

TAIL_BYTES = 16_384


def tail(log: Path, lines: int = 15) -> str:
    """The last lines of the log; a note instead when there are none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL_BYTES))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        text = ""
    return "\n".join(text.splitlines()[-lines:]) or f"({log} is empty)"
