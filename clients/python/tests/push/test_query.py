"""A live query against a server that is scripted frame by frame."""

import asyncio
from collections.abc import Sequence

import pytest

from statecast.push.v1.push_pb2 import Error
from statecast.push.v1.query_pb2 import QueryPlace, QueryStep, QueryUnwatched
from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeUnwatched, RangeWatched
from statecast.push.v1.subscription_pb2 import Start
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.push import PushClient, PushRefusedError, QuerySubscription, query
from testkit.push_server import Peer, server

FIRST = Range(store="matches", group="football")
STEP = QueryStep(store="odds", group_field="match_id")
ENTERED, CHANGED, LEFT = (
    MemberChange.MEMBER_CHANGE_ENTERED,
    MemberChange.MEMBER_CHANGE_CHANGED,
    MemberChange.MEMBER_CHANGE_LEFT,
)


def at(offset: int) -> Position:
    return Position(epoch=7, offset=offset)


async def began(peer: Peer, path: Sequence[str], frame_id: str = "", recovered: bool = False) -> None:
    start = Start.START_RECOVERED if recovered else Start.START_SNAPSHOT
    watched = RangeWatched(range=Range(store="s", group=path[-1] if path else "football"), start=start)
    await peer.say(id=frame_id, query=QueryPlace(name="q", path=path), range_watched=watched)


async def row(
    peer: Peer, path: Sequence[str], member: str, change: "MemberChange.ValueType", offset: int, last: bool = True
) -> None:
    changed = RangeChanged(change=change, key=StateKey(member=member), position=at(offset))
    if last:
        changed.through.CopyFrom(at(offset))
    await peer.say(query=QueryPlace(name="q", path=path), range_changed=changed)


def words(update: query.QueryUpdate) -> str:
    path, event = "/".join(update.path), update.event
    if isinstance(event, RangeChanged):
        return f"{path} {MemberChange.Name(event.change)[14:]} {event.key.member} {event.skipped}"
    return f"{path} {'begins' if isinstance(event, RangeWatched) else 'ends'}"


async def read(live: QuerySubscription, last: str) -> list[str]:
    said = list[str]()
    async with asyncio.timeout(30):
        while last not in said:
            said.append(words(await anext(live)))
    return said


async def test_it_resumes_each_range_that_it_still_has() -> None:
    resumed: list[tuple[str, str, int]] = []
    is_read = asyncio.Event()

    async def first(peer: Peer) -> None:
        frame = await peer.next_frame()
        assert not frame.watch_query.after
        await began(peer, [], frame.id)
        for number, member in enumerate(("m1", "m2", "m3"), 1):
            await row(peer, [], member, ENTERED, number)
            await began(peer, [member])
            await row(peer, [member], "a", ENTERED, 10 + number)
        await is_read.wait()
        await row(peer, [], "m2", LEFT, 20)
        await peer.say(query=QueryPlace(name="q", path=["m3"]), range_unwatched=RangeUnwatched())
        await row(peer, ["m1"], "a", CHANGED, 21)
        await peer.next_frame()
        peer.socket.transport.abort()

    async def second(peer: Peer) -> None:
        frame = await peer.next_frame()
        resumed.extend(("/".join(each.path), each.group, each.through.offset) for each in frame.watch_query.after)
        await began(peer, [], frame.id, recovered=True)
        await began(peer, ["m1"], recovered=True)
        await row(peer, ["m1"], "a", CHANGED, 22)
        await peer.socket.wait_closed()

    async with server(first, second) as address, PushClient(address) as client:
        live = await client.watch_query("q", FIRST, STEP)
        before = await read(live, "m3 ENTERED a 0")
        is_read.set()
        before += await read(live, "m1 CHANGED a 0")
        await client.subscribe("orders-by-key", "another")
        after = await read(live, "m1 CHANGED a 0")

    assert before[0] == " begins"
    assert {" ENTERED m1 0", "m1 begins", " LEFT m2 0", "m3 ends"} < set(before)
    assert after == ["m1 CHANGED a 0"]
    assert resumed == [("", "football", 20), ("m1", "m1", 21)]


async def test_a_slow_reader_gets_nothing_below_a_row_that_has_left() -> None:
    async def script(peer: Peer) -> None:
        frame = await peer.next_frame()
        await began(peer, [], frame.id)
        await row(peer, [], "m1", ENTERED, 1)
        await began(peer, ["m1"])
        await row(peer, ["m1"], "a", ENTERED, 2)
        await row(peer, [], "m2", ENTERED, 3)
        await began(peer, ["m2"])
        await row(peer, ["m2"], "b", ENTERED, 4)
        await row(peer, ["m2"], "b", CHANGED, 5)
        await row(peer, [], "m1", LEFT, 6)
        await peer.say(query=QueryPlace(name="of another client"), range_changed=RangeChanged())
        await peer.say(id=frame.id, error=Error(code="too_many_subscriptions", message="narrower limits"))

    async with server(script) as address, PushClient(address) as client:
        live = await client.watch_query("q", FIRST, STEP)
        await asyncio.wait_for(live._woken.wait(), 30)
        while live._end is None:  # noqa: ASYNC110  nothing is read
            await asyncio.sleep(0.01)
        read_late = await read(live, "m2 ENTERED b 1")
        with pytest.raises(PushRefusedError, match="narrower limits"):
            await anext(live)

    assert read_late == [" begins", " ENTERED m2 0", "m2 begins", "m2 ENTERED b 1"]


async def test_it_resumes_no_more_than_a_frame_may_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "MAX_AFTER_BYTES", 60)
    resumed: list[int] = []

    async def first(peer: Peer) -> None:
        frame = await peer.next_frame()
        await began(peer, [], frame.id)
        for number in range(9):
            await row(peer, [], f"m{number}", ENTERED, number)
            await began(peer, [f"m{number}"])
            await row(peer, [f"m{number}"], "a", ENTERED, 10)
        await peer.next_frame()
        peer.socket.transport.abort()

    async def second(peer: Peer) -> None:
        resumed.append(len((await peer.next_frame()).watch_query.after))
        await peer.socket.wait_closed()

    async with server(first, second) as address, PushClient(address) as client:
        live = await client.watch_query("q", FIRST, STEP)
        await read(live, "m8 ENTERED a 0")
        await client.subscribe("orders-by-key", "another")
        async with asyncio.timeout(30):
            while not resumed:  # noqa: ASYNC110  the server notes it
                await asyncio.sleep(0.01)

    assert 1 <= resumed[0] < 9


async def test_it_ends_the_query_at_the_server() -> None:
    names: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.next_frame()
        names.append((await peer.next_frame()).unwatch_query.name)
        await peer.say(query_unwatched=QueryUnwatched(name="q"))
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        live = await client.watch_query("q", FIRST, STEP)
        await client.opened()
        await live.unsubscribe()
        with pytest.raises(StopAsyncIteration):
            await anext(live)
        async with asyncio.timeout(30):
            while not names:  # noqa: ASYNC110  the server notes it
                await asyncio.sleep(0.01)

    assert names == ["q"]
