"""The supervisor's book."""

import stat
from pathlib import Path

from local_stack.ledger import Entry, Ledger, read_ledger, write_private


def ledger(**states: str) -> Ledger:
    processes = {name: Entry.model_validate({"state": state, "log": f"{name}.log"}) for name, state in states.items()}
    return Ledger(run="run", supervisor=1, processes=processes)


def test_it_reads_what_it_wrote(tmp_path: Path) -> None:
    written = ledger(broker="ready", topics="done")

    write_private(tmp_path / "processes.json", written.model_dump_json())

    assert read_ledger(tmp_path / "processes.json") == written


def test_there_may_be_none(tmp_path: Path) -> None:
    assert read_ledger(tmp_path / "processes.json") is None


def test_a_stack_is_ready_when_every_process_is_ready_or_done() -> None:
    assert ledger(broker="ready", topics="done").ready
    assert not ledger(broker="ready", gateway="unready").ready


def test_only_the_owner_reads_it_and_no_draft_stays(tmp_path: Path) -> None:
    write_private(tmp_path / "stack.json", "{}")

    assert stat.S_IMODE((tmp_path / "stack.json").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["stack.json"]
