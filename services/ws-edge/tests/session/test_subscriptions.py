"""The keys of a socket keep its limits, and its client gets the newest of the waiting states."""

import asyncio
from dataclasses import replace

import pytest

from testkit.ws_edge.edge import until
from testkit.ws_edge.session import KEY, begin, begin_and_stop_reading, due, only, version
from ws_edge.hub.watch import Watch
from ws_edge.model.states import KeyState, Position
from ws_edge.session.session import SessionContext


def deliver(watch: Watch, news: KeyState) -> None:
    """Hands the session a state as the hub does."""
    only(watch).subscriber.changed(only(watch), news, False)


@pytest.mark.parametrize(("interval_ms", "granted"), [(None, 1.0), (0, 0.0), (1, 0.1), (250, 0.25), (90_000, 5.0)])
async def test_an_interval_is_kept_within_its_limits(
    context: SessionContext, interval_ms: int | None, granted: float
) -> None:
    socket, _, task = begin(context)
    socket.asks(**({} if interval_ms is None else {"interval_ms": interval_ms}))
    (watch,) = await due(context)

    assert watch.interval == granted
    socket.leaves()
    await task


@pytest.mark.parametrize(("interval_ms", "granted"), [(None, 4.0), (250, 0.25), (0, 0.0)])
async def test_without_an_interval_that_of_the_store_is_granted(
    context: SessionContext, interval_ms: int | None, granted: float
) -> None:
    slow = {name: replace(store, interval_ms=4_000) for name, store in context.stores.items()}
    socket, _, task = begin(replace(context, stores=slow))
    socket.asks(**({} if interval_ms is None else {"interval_ms": interval_ms}))
    (watch,) = await due(context)

    assert watch.interval == granted
    socket.leaves()
    await task


async def test_a_client_that_reads_slowly_gets_the_newest_and_what_it_skipped(context: SessionContext) -> None:
    socket, session, task, watch = await begin_and_stop_reading(context)
    for offset in range(2, 7):
        deliver(watch, version(offset))
        await asyncio.sleep(0)
    stalled = session.writer.writing_since is not None
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert stalled
    assert [frame["data"]["tracking_number"] for frame in socket.sent] == ["1", "2", "6"]
    assert [frame.get("skipped") for frame in socket.sent] == [None, None, "3"]
    assert context.metrics.frames.skipped == 3
    assert session.writer.writing_since is None
    socket.leaves()
    await task


async def test_a_socket_is_closed_when_too_many_bytes_wait_for_its_client(context: SessionContext) -> None:
    socket, session, task, watch = await begin_and_stop_reading(context)
    for offset in (2, 3):
        deliver(watch, replace(version(offset), size=600))
        await asyncio.sleep(0)
    within = session.writer.end_code
    deliver(watch, replace(version(4), size=1001))

    assert (within, session.writer.end_code, context.hub.subscriptions) == (None, 4408, 0)
    socket.open.set()
    socket.leaves()
    await task


async def test_the_position_of_a_key_waits_until_its_newest_state_is_sent(context: SessionContext) -> None:
    socket, session, task, watch = await begin_and_stop_reading(context)
    first = session.position_of(KEY)
    for offset in (2, 3):
        context.hub.answered(watch, version(offset))
        watch.deliver(only(watch), snapshot=False)
        await asyncio.sleep(0)
    waiting = session.position_of(KEY)
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert (first, waiting, session.position_of(KEY)) == (Position(1, 1), None, Position(1, 3))
    socket.leaves()
    await task
    assert (session.watches(KEY), session.position_of(KEY)) == (False, None)


async def test_a_withdrawn_row_that_waits_is_never_sent(context: SessionContext) -> None:
    socket, session, task, watch = await begin_and_stop_reading(context)
    deliver(watch, version(2))
    await until(lambda: session.writer.writing_since is not None)
    deliver(watch, version(3))
    context.hub.answered(watch, version(4, owner="customer-0002"))
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert socket.sent[1]["data"]["tracking_number"] == "2"
    assert socket.sent[2]["error"]["code"] == "forbidden"
    socket.leaves()
    await task


async def test_more_keys_than_allowed_are_refused_and_asking_again_changes_the_interval(
    context: SessionContext,
) -> None:
    socket, _, task = begin(context)
    for order_id in ("a", "b", "c"):
        socket.asks(order_id=order_id)
    socket.asks(order_id="a", interval_ms=200)
    await until(lambda: len(socket.sent) == 1)
    watches = {watch.key.group: watch for watch in await due(context, 2)}
    await until(lambda: watches["a"].interval == 0.2)

    assert socket.sent[0]["error"]["code"] == "too_many_subscriptions"
    assert socket.sent[0]["error"]["order_id"] == "c"
    assert context.hub.subscriptions == 2
    socket.leaves()
    await task


async def test_a_late_first_answer_is_announced(context: SessionContext) -> None:
    socket, _, task = begin(context)
    socket.asks()
    (watch,) = await due(context)
    only(watch).subscriber.delayed(only(watch))
    await until(lambda: len(socket.sent) == 1)

    assert (socket.sent[0]["error"]["code"], socket.sent[0]["error"]["order_id"]) == ("unavailable", "12345")
    socket.leaves()
    await task
