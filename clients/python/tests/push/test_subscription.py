"""Ranges on the live client: what a slow reader receives, and how they are resumed after a lost connection."""

import asyncio

import pytest

from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched, WatchRange
from statecast.push.v1.subscription_pb2 import Start
from statecast.state.v1.state_pb2 import Position, StateKey
from statecast_client.push import PushClient, RangeSubscription
from testkit.push_server import GROUP, STORE, Peer, server

ENTERED, CHANGED, LEFT = (
    MemberChange.MEMBER_CHANGE_ENTERED,
    MemberChange.MEMBER_CHANGE_CHANGED,
    MemberChange.MEMBER_CHANGE_LEFT,
)
RANGE = Range(store="orders-by-customer", group="customer-1", limit=20, reverse=True)


def member(change: "MemberChange.ValueType", offset: int, name: str = "order-1") -> RangeChanged:
    """A change that comes alone: the range is complete through its position."""
    position = Position(epoch=7, offset=offset)
    key = StateKey(group=RANGE.group, sort="1", member=name)
    return RangeChanged(range=RANGE, change=change, key=key, position=position, through=position)


def subscription_to_range(position: Position | None) -> RangeSubscription:
    """A subscription that no server knows."""
    return RangeSubscription(WatchRange(range=RANGE), position, lambda _: asyncio.sleep(0))


@pytest.mark.parametrize(
    ("unread", "newer", "reported"),
    [
        (ENTERED, CHANGED, ENTERED),
        (ENTERED, LEFT, None),
        (CHANGED, LEFT, LEFT),
        (LEFT, ENTERED, CHANGED),
        (CHANGED, CHANGED, CHANGED),
    ],
)
async def test_unread_changes_of_a_member_become_one(
    unread: "MemberChange.ValueType", newer: "MemberChange.ValueType", reported: "MemberChange.ValueType | None"
) -> None:
    subscription = subscription_to_range(None)
    subscription.put(member(unread, 1))
    subscription.put(member(newer, 2))
    subscription.finish(None)
    heard = [update async for update in subscription]

    assert [(each.change, each.skipped) for each in heard if isinstance(each, RangeChanged)] == (
        [] if reported is None else [(reported, 1)]
    )
    assert subscription.position == Position(epoch=7, offset=2)


async def test_unread_changes_are_bounded_by_what_the_reader_knows() -> None:
    subscription = subscription_to_range(None)
    for offset in range(1000):
        subscription.put(member(ENTERED, 3 * offset, f"passing-{offset}"))
        subscription.put(member(CHANGED, 3 * offset + 1, f"passing-{offset}"))
        subscription.put(member(LEFT, 3 * offset + 2, f"passing-{offset}"))
        subscription.put(member(CHANGED, 3 * offset + 2, "known"))
    subscription.finish(None)
    heard = [update async for update in subscription]

    assert [each.key.member for each in heard if isinstance(each, RangeChanged)] == ["known"]


async def test_a_range_is_resumed_and_a_new_snapshot_drops_what_is_unread() -> None:
    resumed: list[Position] = []

    async def first(peer: Peer) -> None:
        frame = await peer.next_frame()
        await peer.say(id=frame.id, range_watched=RangeWatched(range=RANGE, start=Start.START_SNAPSHOT, members=1))
        await peer.say(range_changed=member(ENTERED, 3))
        await peer.next_frame()
        peer.socket.transport.abort()

    async def second(peer: Peer) -> None:
        frame = await peer.next_frame()
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


def change_with_more_to_come(change: "MemberChange.ValueType", offset: int, name: str) -> RangeChanged:
    """A change that more changes follow: the range cannot be resumed after its position."""
    changed = member(change, offset, name)
    changed.ClearField("through")
    return changed


def watched(start: "Start.ValueType") -> RangeWatched:
    return RangeWatched(range=RANGE, start=start)


async def heard_of(subscription: RangeSubscription) -> list[tuple[str, int]]:
    """The members of the unread changes, with their offsets; ends the subscription."""
    subscription.finish(None)
    updates = [each async for each in subscription]
    return [(each.key.member, each.position.offset) for each in updates if isinstance(each, RangeChanged)]


async def test_changes_that_a_resumption_brings_again_are_left_out() -> None:
    subscription = subscription_to_range(Position(epoch=7, offset=1))
    subscription.begin(watched(Start.START_RECOVERED))
    subscription.put(change_with_more_to_come(ENTERED, 2, "a"))
    subscription.put(change_with_more_to_come(LEFT, 3, "b"))
    read = [await anext(subscription), await anext(subscription)]
    resumed_from = subscription.position
    subscription.begin(watched(Start.START_RECOVERED))
    subscription.put(change_with_more_to_come(CHANGED, 2, "a"))
    subscription.put(change_with_more_to_come(LEFT, 3, "b"))
    subscription.put(change_with_more_to_come(CHANGED, 4, "c"))
    subscription.put(member(CHANGED, 5, "a"))

    assert [type(each) for each in read] == [RangeChanged, RangeChanged]
    assert resumed_from == Position(epoch=7, offset=1)
    assert await heard_of(subscription) == [("c", 4), ("a", 5)]
    assert subscription.position == Position(epoch=7, offset=5)


async def test_a_change_beyond_the_last_complete_position_is_left_out_when_it_comes_again() -> None:
    """A row can be newer than the position through which its range was read."""
    subscription = subscription_to_range(Position(epoch=7, offset=1))
    subscription.begin(watched(Start.START_RECOVERED))
    ahead = member(ENTERED, 5, "a")
    ahead.through.offset = 4
    subscription.put(ahead)
    read = await anext(subscription)
    subscription.begin(watched(Start.START_RECOVERED))
    subscription.put(member(CHANGED, 5, "a"))
    subscription.put(member(ENTERED, 6, "b"))

    assert isinstance(read, RangeChanged)
    assert await heard_of(subscription) == [("b", 6)]


async def test_an_incomplete_snapshot_is_requested_again() -> None:
    subscription = subscription_to_range(Position(epoch=7, offset=9))
    subscription.begin(watched(Start.START_SNAPSHOT))
    subscription.put(change_with_more_to_come(ENTERED, 2, "a"))

    assert subscription.position is None
    subscription.begin(watched(Start.START_SNAPSHOT))
    subscription.put(change_with_more_to_come(ENTERED, 2, "a"))
    subscription.put(member(ENTERED, 3, "b"))
    assert await heard_of(subscription) == [("a", 2), ("b", 3)]
