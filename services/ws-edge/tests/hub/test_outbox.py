"""The outbox holds the newest version of each key, tells what it skipped, and never grows beyond its keys."""

from hypothesis import given, settings
from hypothesis import strategies as st

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.hub.outbox import Outbox
from ws_edge.hub.range_subscription import RangeSubscription
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.states import Position, RangeKey, StoreKey, Version


class Nobody:
    """A subscriber of a range that is told nothing."""

    def range_started(self, _: RangeSubscription, recovered: bool) -> None: ...
    def range_changed(self, _: RangeSubscription) -> None: ...
    def range_refused(self, _: RangeSubscription, error: RequestError) -> None: ...
    def range_delayed(self, _: RangeSubscription) -> None: ...


def version(group: str, offset: int) -> Version:
    return Version(StoreKey("s", group), Position(1, offset), row=object())


def test_a_newer_version_takes_the_place_of_the_one_it_replaces() -> None:
    outbox = Outbox()
    replaced = [outbox.put(version("a", 1)), outbox.put(version("b", 1)), outbox.put(newest := version("a", 2))]

    first, second = outbox.take(), outbox.take()

    assert replaced == [False, False, True]
    assert first is not None
    assert (first.version, first.skipped) == (newest, 1)
    assert second is not None
    assert second.skipped == 0
    assert outbox.take() is None


def test_a_range_waits_once_in_its_turn_and_its_rows_count_nothing() -> None:
    outbox = Outbox()
    watch = RangeWatch(RangeKey("s", "g", "", "", 10, False), 0.0)
    subscription = RangeSubscription(watch, Nobody(), Consumer("", "operator", True), None, 0.0, True)
    for offset in (1, 2):
        outbox.put_range(subscription)
        outbox.put(version("a", offset))
    sizes = outbox.size
    items = [outbox.take(), outbox.take(), outbox.take()]

    assert sizes == 0
    assert [item is not None and item.range is subscription for item in items] == [True, False, False]
    assert items[2] is None
    outbox.put_range(subscription)
    outbox.withdraw(watch.key)
    assert outbox.take() is None


def test_its_size_is_that_of_all_that_waits() -> None:
    outbox = Outbox()
    for group, offset, size in (("a", 1, 10), ("b", 1, 20), ("a", 2, 30)):
        outbox.put(Version(StoreKey("s", group), Position(1, offset), row=object(), size=size))
    outbox.reply({"type": "websocket.send", "text": "12345"})
    sizes = [outbox.size]
    outbox.withdraw(StoreKey("s", "b"))
    outbox.withdraw(StoreKey("s", "b"))
    sizes.append(outbox.size)
    outbox.take()
    sizes.append(outbox.size)
    outbox.take()
    sizes.append(outbox.size)

    assert sizes == [55, 35, 5, 0]


def test_skipped_counts_since_the_last_frame_of_the_key() -> None:
    outbox = Outbox()
    for offset in range(4):
        outbox.put(version("a", offset))
    first = outbox.take()
    outbox.put(version("a", 9))
    second = outbox.take()

    assert first is not None
    assert second is not None
    assert (first.skipped, second.skipped) == (3, 0)


def test_replies_are_never_replaced_and_keep_their_order_among_versions() -> None:
    outbox = Outbox()
    outbox.reply({"n": 1})
    outbox.put(version("a", 1))
    outbox.reply({"n": 2})

    assert outbox.replies == 2
    assert [item.reply for item in iter(outbox.take, None) if item] == [{"n": 1}, None, {"n": 2}]
    assert outbox.replies == 0


def test_what_is_withdrawn_is_not_sent() -> None:
    outbox = Outbox()
    outbox.put(version("a", 1))
    outbox.put(version("a", 2))
    outbox.withdraw(StoreKey("s", "a"))
    outbox.put(version("a", 3))
    item = outbox.take()

    assert item is not None
    assert item.skipped == 0
    assert len(outbox) == 0


def test_a_change_that_replaces_a_snapshot_is_a_change() -> None:
    outbox = Outbox()
    outbox.put(version("a", 1), snapshot=True)
    outbox.put(version("b", 1), snapshot=True)
    outbox.put(version("a", 2))

    assert [item.snapshot for item in iter(outbox.take, None) if item] == [False, True]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*"abcde", "take"]), max_size=200))
def test_it_never_holds_more_than_one_version_a_key_and_counts_every_one(steps: list[str]) -> None:
    outbox, put, told = Outbox(), 0, 0
    for offset, step in enumerate(steps):
        if step == "take":
            item = outbox.take()
            told += 0 if item is None else 1 + item.skipped
        else:
            outbox.put(version(step, offset))
            put += 1

        assert len(outbox) <= 5

    told += sum(1 + item.skipped for item in iter(outbox.take, None) if item)
    assert told == put
