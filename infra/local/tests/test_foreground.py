"""A stack in the foreground, up to where it fails; test_background has those that run."""

import socket
from pathlib import Path

import pytest

from local_stack import run_lock
from local_stack.errors import AlreadyRunningError, DirectoryError, PortInUseError
from local_stack.foreground import run_stack
from local_stack.ledger import read_ledger
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.testing import small_stack


def test_why_it_failed_is_left_for_others_to_read(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = Settings(directory=tmp_path, edge_2_port=server.getsockname()[1])

        with pytest.raises(PortInUseError, match="LOCAL_STACK_EDGE_2_PORT"):
            run_stack(settings, small_stack)

    ledger = read_ledger(StackDirectory(tmp_path).ledger)
    assert ledger is not None
    assert "LOCAL_STACK_EDGE_2_PORT" in ledger.failure


def test_a_second_one_is_refused(tmp_path: Path) -> None:
    with run_lock.hold(tmp_path / "lock"), pytest.raises(AlreadyRunningError):
        run_stack(Settings(directory=tmp_path), small_stack)


def test_a_directory_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(DirectoryError):
        run_stack(Settings(directory=tmp_path / "file"), small_stack)
