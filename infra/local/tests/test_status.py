"""The status."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from local_stack.__main__ import NOT_READY, NOT_RUNNING, READY, memory_mib, show_status
from local_stack.settings import Settings
from local_stack.stack_directory import Entry, Ledger, StackDirectory, State, write_private
from local_stack.stack_file import stack_text
from testkit.processes import family

Shown = Callable[[], tuple[int, str]]


@pytest.fixture
def directory(tmp_path: Path) -> StackDirectory:
    stack_directory = StackDirectory(tmp_path)
    stack_directory.create()
    return stack_directory


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    def show() -> tuple[int, str]:
        console = Console(width=200)
        with console.capture() as capture:
            status = show_status(StackDirectory(tmp_path), console)
        return status, capture.get()

    return show


def write(directory: StackDirectory, state: State, *, reason: str = "", failure: str = "") -> None:
    entries = {"broker": Entry(state=state, pid=os.getpid(), reason=reason, log=directory.log_file("broker"))}
    ledger = Ledger(run="run", supervisor=os.getpid(), processes=entries, failure=failure)
    directory.write_ledger(ledger)
    text = stack_text(Settings(directory=directory.root), {}, entries)
    write_private(directory.stack_file, text)


def test_nothing_runs(shown: Shown) -> None:
    status, text = shown()

    assert status == NOT_RUNNING
    assert "nothing runs in" in text


def test_why_the_last_stack_ended_is_told(directory: StackDirectory, shown: Shown) -> None:
    write(directory, "stopped", failure="query-1 ended 5 times in 60 s")

    status, text = shown()

    assert status == NOT_RUNNING
    assert "query-1 ended 5 times in 60 s" in text


def test_a_stack_without_a_ledger_is_starting(directory: StackDirectory, shown: Shown) -> None:
    with directory.locked():
        status, text = shown()

    assert status == NOT_READY
    assert "is starting" in text


def test_a_ready_stack_shows_its_processes_and_addresses(directory: StackDirectory, shown: Shown) -> None:
    write(directory, "ready")
    with directory.locked():
        status, text = shown()

    assert status == READY
    assert f"ready  {os.getpid()}" in text
    assert "gateway" in text
    assert "/operator" in text


def test_a_process_that_is_not_ready_says_why(directory: StackDirectory, shown: Shown) -> None:
    write(directory, "unready", reason="the broker is away")
    with directory.locked():
        status, text = shown()

    assert status == NOT_READY
    assert "the broker is away" in text


def test_memory_is_that_of_the_processes() -> None:
    assert memory_mib(family(os.getpid())) > 10
    assert memory_mib([]) == 0
