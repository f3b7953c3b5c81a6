"""The directory of a stack."""

from pathlib import Path

import pytest

from local_stack.errors import DirectoryError
from local_stack.stack_directory import StackDirectory


@pytest.fixture
def directory(tmp_path: Path) -> StackDirectory:
    made = StackDirectory(tmp_path / "stack")
    made.create()
    return made


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DirectoryError, match=r"cannot write to .*file/stack .*set LOCAL_STACK_DIRECTORY"):
        StackDirectory(tmp_path / "file" / "stack").create()


def test_a_new_run_puts_old_logs_aside_and_holds_nothing_down(directory: StackDirectory) -> None:
    directory.log("broker").write_text("old")
    directory.stack_file.touch()
    (directory.held / "broker").touch()

    directory.begin_run()

    assert directory.log("broker").with_suffix(".log.1").read_text() == "old"
    assert not directory.log("broker").exists()
    assert not directory.stack_file.exists()
    assert not list(directory.held.iterdir())


def test_a_new_run_keeps_the_log_that_its_supervisor_writes(directory: StackDirectory) -> None:
    directory.log("supervisor").write_text("begun")

    directory.begin_run()

    assert directory.log("supervisor").read_text() == "begun"


def test_wiping_removes_the_data_and_leaves_the_logs(directory: StackDirectory) -> None:
    (directory.data / "orders.sqlite").touch()
    directory.log("broker").touch()

    directory.wipe()

    assert not directory.data.exists()
    assert directory.log("broker").exists()
