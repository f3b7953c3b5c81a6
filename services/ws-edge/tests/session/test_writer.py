"""A coroutine runs at once as far as it goes, and becomes a task when it has to wait."""

import asyncio

import pytest

from ws_edge.session.writer import start_eagerly


async def test_a_coroutine_that_does_not_wait_runs_without_a_task() -> None:
    done = []

    async def work() -> None:
        done.append("done")

    assert start_eagerly(work()) is None
    assert done == ["done"]


async def test_a_coroutine_that_waits_continues_in_a_task() -> None:
    steps, ready = [], asyncio.Event()

    async def work() -> None:
        steps.append("before")
        await ready.wait()
        steps.append("between")
        await asyncio.sleep(0)
        steps.append("after")

    task = start_eagerly(work())
    assert task is not None
    assert steps == ["before"]
    ready.set()
    await task

    assert steps == ["before", "between", "after"]


async def test_a_task_that_is_cancelled_lets_its_coroutine_clean_up() -> None:
    steps = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            steps.append("cleaned up")

    task = start_eagerly(work())
    assert task is not None
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert steps == ["cleaned up"]


async def test_a_coroutine_that_fails_at_once_fails_in_its_caller() -> None:
    async def work() -> None:
        raise ValueError("a defect")

    with pytest.raises(ValueError, match="a defect"):
        start_eagerly(work())
