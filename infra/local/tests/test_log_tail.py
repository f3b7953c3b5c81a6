"""The end of a log."""

from pathlib import Path

from local_stack.log_tail import TAIL_BYTES, tail


def test_it_shows_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "broker.log"
    log.write_text("".join(f"line {number}\n" for number in range(TAIL_BYTES)))

    assert tail(log, 2) == f"line {TAIL_BYTES - 2}\nline {TAIL_BYTES - 1}"


def test_a_missing_or_empty_log_is_said_to_be_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()

    assert "empty.log is empty" in tail(tmp_path / "empty.log")
    assert "missing.log is empty" in tail(tmp_path / "missing.log")
