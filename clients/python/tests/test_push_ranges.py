"""Ranges on the live client: what an absent-minded reader is told, and how they go on after a lost connection."""

import asyncio

import pytest

from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Start
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.push import PushClient, RangeSubscription
from statecast_client.push.testing import GROUP, STORE, Peer, server

ENTERED, CHANGED, LEFT = (
    MemberChange.MEMBER_CHANGE_ENTERED,
    MemberChange.MEMBER_CHANGE_CHANGED,
    MemberChange.MEMBER_CHANGE_LEFT,
)
RANGE = Range(store="orders-by-customer", group="customer-1", limit=20, reverse=True)


def member(change: "MemberChange.ValueType", offset: int, name: str = "order-1") -> RangeChanged:
    """A change that comes alone: everything through its position has been told."""
    position = Position(epoch=7, offset=offset)
    key = StateKey(group=RANGE.group, sort="1", member=name)
    return RangeChanged(range=RANGE, change=change, key=key, position=position, through=position)


@pytest.mark.parametrize(
    ("unread", "newer", "told"),
    [
        (ENTERED, CHANGED, ENTERED),
        (ENTERED, LEFT, None),
        (CHANGED, LEFT, LEFT),
        (LEFT, ENTERED, CHANGED),
        (CHANGED, CHANGED, CHANGED),
    ],
)
async def test_unread_changes_of_a_member_become_one(
    unread: "MemberChange.ValueType", newer: "MemberChange.ValueType", told: "MemberChange.ValueType | None"
) -> None:
    subscription = RangeSubscription(None, lambda *_: b"", lambda: asyncio.sleep(0))
    subscription.put(member(unread, 1))
    subscription.put(member(newer, 2))
    subscription.finish(None)
    heard = [update async for update in subscription]

    assert [(each.change, each.skipped) for each in heard if isinstance(each, RangeChanged)] == (
        [] if told is None else [(told, 1)]
    )
    assert subscription.position == Position(epoch=7, offset=2)


async def test_a_range_is_resumed_and_a_new_snapshot_drops_what_is_unread() -> None:
    resumed: list[Position] = []

    async def first(peer: Peer) -> None:
        frame = await peer.asked()
        await peer.say(id=frame.id, range_watched=RangeWatched(range=RANGE, start=Start.START_SNAPSHOT, members=1))
        await peer.say(range_changed=member(ENTERED, 3))
        await peer.asked()
        peer.socket.transport.abort()

    async def second(peer: Peer) -> None:
        frame = await peer.asked()
        resumed.append(frame.watch_range.after)
        await peer.say(id=frame.id, range_watched=RangeWatched(range=RANGE, start=Start.START_RECOVERED))
        await peer.say(range_changed=member(CHANGED, 4))
        await peer.say(id=frame.id, range_watched=RangeWatched(range=RANGE, start=Start.START_SNAPSHOT))
        await peer.say(range_changed=member(ENTERED, 5, "order-2"))
        await peer.socket.wait_closed()

    async with server(first, second) as address, PushClient(address) as client:
        orders = await client.watch_range(RANGE)
        began, entered = await anext(orders), await anext(orders)
        marker = await client.subscribe(STORE, GROUP)
        await marker.unsubscribe()
        async with asyncio.timeout(30):
            while orders.position is None or orders.position.offset < 5:  # noqa: ASYNC110  nothing is read
                await asyncio.sleep(0.01)
        heard = [await anext(orders), await anext(orders)]

    assert isinstance(began, RangeWatched)
    assert isinstance(entered, RangeChanged)
    assert resumed == [Position(epoch=7, offset=3)]
    assert [type(each) for each in heard] == [RangeWatched, RangeChanged]
    assert isinstance(heard[1], RangeChanged)
    assert heard[1].key.member == "order-2"
