"""The outbox holds the newest state of each key, counts skipped ones, and never grows beyond its keys."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ws_edge.errors import RequestError
from ws_edge.hub.member_changes import Backlog, MemberChange
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.hub.watch import Subscription
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey
from ws_edge.session.writer import Outbox


class Nobody:
    """A subscriber of a range that ignores everything."""

    def started(self, _: Subscription, recovered: bool) -> None: ...
    def changed(self, _: Subscription, state: KeyState | None, snapshot: bool) -> None: ...
    def refused(self, _: Subscription, error: RequestError) -> None: ...
    def change_taken(self, _: Subscription, change: MemberChange) -> None: ...

    def delayed(self, _: Subscription) -> None: ...


def state(group: str, offset: int) -> KeyState:
    return KeyState(StoreKey("s", group), Position(1, offset), row=object())


def test_a_newer_state_takes_the_place_of_the_one_it_replaces() -> None:
    outbox = Outbox(1000)
    replaced = [outbox.put(state("a", 1)), outbox.put(state("b", 1)), outbox.put(newest := state("a", 2))]

    first, second = outbox.take(), outbox.take()

    assert replaced == [False, False, True]
    assert first is not None
    assert (first.content, first.skipped) == (newest, 1)
    assert second is not None
    assert second.skipped == 0
    assert outbox.take() is None


def test_a_state_that_is_told_again_waits_once_and_skips_nothing() -> None:
    outbox = Outbox(1000)
    outbox.put(waiting := state("a", 1), snapshot=False)
    outbox.put(state("b", 1))
    replaced = [outbox.put(waiting, snapshot=True) for _ in range(1000)]
    first, second = outbox.take(), outbox.take()

    assert not any(replaced)
    assert first is not None
    assert (first.content, first.skipped, first.snapshot) == (waiting, 0, False)
    assert second is not None
    assert outbox.take() is None


def test_a_range_waits_once_and_its_rows_count_nothing() -> None:
    outbox = Outbox(1000)
    key = RangeKey("s", "g", "", "", 10, False)
    watch = RangeWatch(key, 0.0)
    subscription = Subscription(watch, Nobody(), Consumer("", "operator", True), None, 0.0, "", Backlog(True))
    for offset in (1, 2):
        outbox.put_range(subscription)
        outbox.put(state("a", offset))
    sizes = outbox.size
    items = [outbox.take(), outbox.take(), outbox.take()]

    assert sizes == 0
    assert [item is not None and item.content is subscription for item in items] == [True, False, False]
    assert items[2] is None
    outbox.put_range(subscription)
    outbox.withdraw(watch.key)
    assert outbox.take() is None


def test_its_size_is_that_of_all_that_waits() -> None:
    outbox = Outbox(1000)
    for group, offset, size in (("a", 1, 10), ("b", 1, 20), ("a", 2, 30)):
        outbox.put(KeyState(StoreKey("s", group), Position(1, offset), row=object(), size=size))
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
    outbox = Outbox(1000)
    for offset in range(4):
        outbox.put(state("a", offset))
    first = outbox.take()
    outbox.put(state("a", 9))
    second = outbox.take()

    assert first is not None
    assert second is not None
    assert (first.skipped, second.skipped) == (3, 0)


def test_replies_are_never_replaced_and_keep_their_order_among_states() -> None:
    outbox = Outbox(1000)
    outbox.reply({"n": 1})
    outbox.put(between := state("a", 1))
    outbox.reply({"n": 2})

    assert outbox.replies == 2
    assert [item.content for item in iter(outbox.take, None) if item] == [{"n": 1}, between, {"n": 2}]
    assert outbox.replies == 0


def test_a_withdrawn_state_is_not_sent() -> None:
    outbox = Outbox(1000)
    outbox.put(state("a", 1))
    outbox.put(state("a", 2))
    outbox.withdraw(StoreKey("s", "a"))
    outbox.put(state("a", 3))
    item = outbox.take()

    assert item is not None
    assert item.skipped == 0
    assert outbox.take() is None


def test_a_change_that_replaces_a_snapshot_is_a_change() -> None:
    outbox = Outbox(1000)
    outbox.put(state("a", 1), snapshot=True)
    outbox.put(state("b", 1), snapshot=True)
    outbox.put(state("a", 2))

    assert [item.snapshot for item in iter(outbox.take, None) if item] == [False, True]


@given(st.lists(st.sampled_from([*"abcde", "take"]), max_size=200))
def test_it_never_holds_more_than_one_state_a_key_and_counts_every_one(steps: list[str]) -> None:
    outbox, put, sent = Outbox(1000), 0, 0
    for offset, step in enumerate(steps):
        if step == "take":
            item = outbox.take()
            sent += 0 if item is None else 1 + item.skipped
        else:
            outbox.put(replace(state(step, offset), size=1))
            put += 1

        assert outbox.size <= 5

    sent += sum(1 + item.skipped for item in iter(outbox.take, None) if item)
    assert sent == put
