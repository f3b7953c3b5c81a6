"""The keys of a socket keep its limits, and its client is sent the newest of what waited."""

import asyncio
from dataclasses import replace

import pytest

from ws_edge.hub.subscription import Watch
from ws_edge.sockets.surroundings import Surroundings
from ws_edge.states import Position, Version
from ws_edge.testing.edge import until
from ws_edge.testing.session import KEY, begin, begin_and_stop_reading, due, only, version


def tell(watch: Watch, news: Version) -> None:
    """Hands the session a version as the hub does."""
    only(watch).subscriber.changed(only(watch), news, False)


@pytest.mark.parametrize(("asked", "granted"), [(None, 1.0), (0, 0.0), (1, 0.1), (250, 0.25), (90_000, 5.0)])
async def test_an_interval_is_kept_within_its_limits(around: Surroundings, asked: int | None, granted: float) -> None:
    socket, _, task = begin(around)
    socket.asks(**({} if asked is None else {"interval_ms": asked}))
    (watch,) = await due(around)

    assert watch.interval == granted
    socket.leaves()
    await task


async def test_a_client_that_reads_slowly_gets_the_newest_and_what_it_skipped(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    for offset in range(2, 7):
        tell(watch, version(offset))
        await asyncio.sleep(0)
    stalled = session.writing_since is not None
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert stalled
    assert [frame["data"]["tracking_number"] for frame in socket.sent] == ["1", "2", "6"]
    assert [frame.get("skipped") for frame in socket.sent] == [None, None, "3"]
    assert around.metrics.frames.skipped == 3
    assert session.writing_since is None
    socket.leaves()
    await task


async def test_a_client_for_whom_too_many_bytes_wait_is_sent_away(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    for offset in (2, 3):
        tell(watch, replace(version(offset), size=600))
        await asyncio.sleep(0)
    within = session.end_code
    tell(watch, replace(version(4), size=1001))

    assert (within, session.end_code, around.hub.subscriptions) == (None, 4408, 0)
    socket.open.set()
    socket.leaves()
    await task


async def test_what_was_not_sent_is_not_reached(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    first = session.reached(KEY)
    for offset in (2, 3):
        around.hub.answered(watch, version(offset))
        only(watch).deliver(snapshot=False)
        await asyncio.sleep(0)
    waiting = session.reached(KEY)
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert (first, waiting, session.reached(KEY)) == (Position(1, 1), None, Position(1, 3))
    socket.leaves()
    await task
    assert (session.watches(KEY), session.reached(KEY)) == (False, None)


async def test_what_waits_of_a_row_that_was_withdrawn_is_never_sent(around: Surroundings) -> None:
    socket, session, task, watch = await begin_and_stop_reading(around)
    tell(watch, version(2))
    await until(lambda: session.writing_since is not None)
    tell(watch, version(3))
    around.hub.answered(watch, version(4, owner="customer-0002"))
    socket.open.set()
    await until(lambda: len(socket.sent) == 3)

    assert socket.sent[1]["data"]["tracking_number"] == "2"
    assert socket.sent[2]["error"]["code"] == "forbidden"
    socket.leaves()
    await task


async def test_more_keys_than_allowed_are_refused_and_asking_again_changes_the_interval(around: Surroundings) -> None:
    socket, _, task = begin(around)
    for order_id in ("a", "b", "c"):
        socket.asks(order_id=order_id)
    socket.asks(order_id="a", interval_ms=200)
    await until(lambda: len(socket.sent) == 1)
    watches = {watch.key.group: watch for watch in await due(around, 2)}
    await until(lambda: watches["a"].interval == 0.2)

    assert socket.sent[0]["error"]["code"] == "too_many_subscriptions"
    assert socket.sent[0]["error"]["order_id"] == "c"
    assert around.hub.subscriptions == 2
    socket.leaves()
    await task


async def test_a_late_first_answer_is_said(around: Surroundings) -> None:
    socket, _, task = begin(around)
    socket.asks()
    (watch,) = await due(around)
    only(watch).delay()
    await until(lambda: len(socket.sent) == 1)

    assert (socket.sent[0]["error"]["code"], socket.sent[0]["error"]["order_id"]) == ("unavailable", "12345")
    socket.leaves()
    await task
