"""What each answer changes in a range, who is told so, and from where a subscriber may resume."""

import pytest

from ws_edge.authorization import Consumer
from ws_edge.errors import RequestError
from ws_edge.hub import Hub
from ws_edge.member_changes import MemberChange
from ws_edge.questions import RangeAnswer, RangeQuestion, Removal
from ws_edge.range_subscription import RangeSubscription
from ws_edge.range_watch import REMOVALS, RangeWatch
from ws_edge.states import Position, RangeKey, StoreKey, Version
from ws_edge.testing import Clock

ALICE = Consumer("alice", "alice", False)
BOB = Consumer("bob", "bob", False)
STAFF = Consumer("", "operator", True)


def range_key(limit: int = 10, reverse: bool = False) -> RangeKey:
    return RangeKey("orders-by-customer", "alice", "", "", limit, reverse)


def at(offset: int, epoch: int = 1) -> Position:
    return Position(epoch, offset)


def row(name: str, offset: int, sort: str = "", owner: str = "alice", epoch: int = 1) -> Version:
    key = StoreKey("orders-by-customer", "alice", sort or name, name)
    return Version(key, at(offset, epoch), row=object(), owner=owner)


def gone(name: str, offset: int, sort: str = "") -> Removal:
    return Removal(StoreKey("orders-by-customer", "alice", sort or name, name), at(offset), None)


def whole(*rows: Version, through: int, more: bool = False, epoch: int = 1) -> RangeAnswer:
    return RangeAnswer(None, at(through, epoch), True, more, list(rows), [], False)


def news(*told: Version | Removal, after: int, through: int) -> RangeAnswer:
    versions = [each for each in told if isinstance(each, Version)]
    removals = [each for each in told if isinstance(each, Removal)]
    return RangeAnswer(at(after), at(through), False, False, versions, removals, True)


def word(change: MemberChange) -> str:
    mark = "-" if change.after is None else "+" if change.before is None else "~"
    return f"{mark}{change.key.member}@{change.position.offset}"


class Phone:
    """Takes everything at once, as words, unless it is told to read slowly."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.taken: list[MemberChange] = []
        self.reads = True

    def range_started(self, _: RangeSubscription, recovered: bool) -> None:
        self.told.append("recovered" if recovered else "snapshot")

    def range_changed(self, subscription: RangeSubscription) -> None:
        while self.reads and (change := subscription.take()) is not None:
            self.taken.append(change)
            self.told.append(word(change))

    def range_refused(self, subscription: RangeSubscription, error: RequestError) -> None:
        raise AssertionError("a range is refused before it is watched")

    def range_delayed(self, _: RangeSubscription) -> None:
        self.told.append("delayed")


class Range:
    """A hub that watches one range, whose answers are given by hand."""

    def __init__(self, limit: int = 10, reverse: bool = False) -> None:
        self.clock = Clock()
        self.hub = Hub(self.clock, quantum=0.025, patience=3.0)
        self.key = range_key(limit, reverse)

    def join(self, after: Position | None = None, consumer: Consumer = ALICE, sees_all: bool = True) -> Phone:
        phone = Phone()
        self.subscription = self.hub.watch_range(phone, consumer, self.key, after, 0.1, sees_all)
        return phone

    def due(self) -> tuple[RangeWatch, RangeQuestion]:
        self.clock.now += 0.2
        self.hub.advance()
        (watch,) = self.hub.take_due()
        assert isinstance(watch, RangeWatch)
        return watch, watch.ask()

    def answer(self, answer: RangeAnswer) -> RangeQuestion:
        """Answers the next question, and returns that question."""
        watch, asked = self.due()
        self.hub.answered(watch, answer)
        return asked


def test_a_range_begins_with_all_members_and_goes_on_with_what_changes() -> None:
    watched = Range()
    phone = watched.join()
    first = watched.answer(whole(row("a", 1), row("b", 2), through=5))
    second = watched.answer(news(row("c", 6), row("a", 7), gone("b", 8), after=5, through=8))

    assert phone.told == ["snapshot", "+a@1", "+b@2", "+c@6", "~a@7", "-b@8"]
    assert (first.after, first.whole) == (None, True)
    assert (second.after, second.whole) == (at(5), False)
    assert watched.subscription.through == at(8)


def test_an_empty_range_is_known_and_can_be_resumed() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(through=5))

    assert phone.told == ["snapshot"]
    assert watched.subscription.through == at(5)


def test_a_member_under_another_sort_value_changes_and_does_not_leave() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 1, sort="1"), through=5))
    watched.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="2"), after=5, through=7))
    watched.answer(news(row("a", 8, sort="3"), after=7, through=8))
    watched.answer(news(gone("a", 9, sort="2"), after=8, through=9))

    assert phone.told == ["snapshot", "+a@1", "~a@7", "~a@8"]
    assert phone.taken[-1].key.sort == "3"


def test_what_is_told_again_or_late_is_told_once() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 3), through=5))
    watched.answer(news(row("a", 7), through=6, after=5))
    watched.answer(news(row("a", 7), through=7, after=6))
    watched.answer(whole(row("a", 3), through=4))
    watched.answer(news(row("a", 6), through=6, after=5))
    watched.answer(whole(row("a", 3), through=7))

    assert phone.told == ["snapshot", "+a@3", "~a@7"]


def test_an_answer_with_all_members_tells_what_is_different() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5))
    watched.answer(whole(row("b", 2), row("c", 8), through=9))

    assert phone.told[3:] == ["-a@9", "+c@9"]


def test_another_epoch_is_told_as_what_is_different_and_replicas_that_are_behind_are_not_believed() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 10), row("b", 12), through=15))
    watched.answer(whole(row("a", 1, epoch=2), through=3, epoch=2))
    watched.answer(whole(row("b", 12), through=15))

    assert phone.told[3:] == ["~a@1", "-b@3"]


def test_a_window_lets_the_first_in_and_the_last_out() -> None:
    watched = Range(limit=2)
    phone = watched.join()
    watched.answer(whole(row("b", 1), row("d", 2), through=5))
    watched.answer(news(row("c", 6), row("e", 7), after=5, through=7))

    assert phone.told[3:] == ["+c@6", "-d@7"]
    assert list(watched.due()[0].members) == ["b", "c"]


def test_a_window_that_has_lost_a_member_is_read_anew() -> None:
    watched = Range(limit=2)
    phone = watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5, more=True))
    watched.answer(news(gone("a", 6), row("z", 7), after=5, through=7))
    asked = watched.answer(whole(row("b", 2), row("c", 3), through=7, more=True))

    assert asked.whole
    assert phone.told[3:] == ["-a@6", "+c@7"]
    assert not watched.due()[1].whole


def test_a_member_that_moves_behind_the_window_leaves_it() -> None:
    watched = Range(limit=2)
    phone = watched.join()
    watched.answer(whole(row("a", 1, sort="1"), row("b", 2, sort="2"), through=5, more=True))
    watched.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="9"), after=5, through=7))

    assert phone.told[3:] == ["-a@6"]
    assert watched.due()[1].whole


def test_a_reversed_window_holds_the_last() -> None:
    watched = Range(limit=2, reverse=True)
    phone = watched.join()
    watched.answer(whole(row("d", 1), row("c", 2), through=5, more=True))
    watched.answer(news(row("e", 6), row("a", 7), after=5, through=7))

    assert phone.told[3:] == ["+e@6", "-c@7"]


def test_one_read_serves_all_who_watch_a_range_and_each_hears_at_its_own_interval() -> None:
    watched = Range()
    phones = [watched.join() for _ in range(100)]
    watched.answer(whole(row("a", 1), through=5))
    watched.answer(news(row("a", 6), after=5, through=6))

    assert watched.hub.unique_keys == 1
    assert all(phone.told == ["snapshot", "+a@1", "~a@6"] for phone in phones)


def test_who_comes_later_begins_with_what_is_known() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), through=5))
    late = watched.join()

    assert late.told == ["snapshot", "+a@1"]
    assert watched.hub.take_due() == []


def test_a_slow_reader_gets_the_newest_of_each_member_and_no_trace_of_who_came_and_went() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5))
    phone.reads = False
    watched.answer(news(row("a", 6), row("c", 7), row("d", 8), after=5, through=8))
    watched.answer(news(row("a", 9), gone("c", 10), gone("b", 11), after=8, through=11))
    behind = watched.subscription.through
    phone.reads = True
    phone.range_changed(watched.subscription)

    assert behind is None
    assert phone.told[3:] == ["+d@8", "~a@9", "-b@11"]
    assert [change.skipped for change in phone.taken[2:]] == [0, 1, 0]
    assert watched.subscription.through == at(11)


def test_a_row_that_becomes_somebody_elses_leaves_for_the_one_and_enters_for_the_other() -> None:
    watched = Range()
    phones = {who.id: watched.join(consumer=who, sees_all=False) for who in (ALICE, BOB, STAFF)}
    watched.answer(whole(row("a", 1), row("b", 2, owner="bob"), through=5))
    watched.answer(news(row("a", 6, owner="bob"), after=5, through=6))
    watched.answer(news(gone("a", 7), after=6, through=7))

    assert phones["alice"].told == ["snapshot", "+a@1", "-a@6"]
    assert phones["bob"].told == ["snapshot", "+b@2", "+a@6", "-a@7"]
    assert phones[""].told == ["snapshot", "+a@1", "+b@2", "~a@6", "-a@7"]


def test_whoever_resumes_is_told_what_was_missed_and_nothing_else() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), row("c", 3), through=5))
    watched.answer(news(row("a", 6), gone("b", 7), row("d", 8), after=5, through=8))
    resumed = watched.join(after=at(6))

    assert resumed.told == ["recovered", "-b@7", "~d@8"]


def test_whoever_resumes_at_an_edge_that_does_not_know_the_range_has_it_ask_for_the_removals() -> None:
    watched = Range()
    resumed = watched.join(after=at(6))
    watch, asked = watched.due()
    removals = [gone("b", 7)]
    watched.hub.answered(watch, RangeAnswer(at(6), at(9), True, False, [row("a", 1), row("d", 8)], removals, True))
    again = watched.join(after=at(6))

    assert (asked.after, asked.whole) == (at(6), True)
    assert resumed.told == again.told == ["recovered", "-b@7", "~d@8"]


@pytest.mark.parametrize(
    ("after", "sees_all"), [(at(5), True), (at(6, epoch=2), True), (at(6), False)], ids=["old", "epoch", "hidden rows"]
)
def test_whoever_cannot_be_told_for_certain_what_was_missed_gets_all(after: Position, sees_all: bool) -> None:
    watched = Range()
    resumed = watched.join(after=after, sees_all=sees_all)
    watch, _ = watched.due()
    watched.hub.answered(watch, RangeAnswer(after, at(9), True, False, [row("a", 1)], [], after == at(6)))

    assert resumed.told == ["snapshot", "+a@1"]


def test_a_window_that_may_have_been_full_is_not_resumed() -> None:
    watched = Range(limit=2)
    watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5))
    watched.answer(news(gone("a", 6), after=5, through=6))
    watched.answer(news(row("c", 7), after=6, through=7))

    assert watched.join(after=at(6)).told == ["recovered", "~c@7"]
    assert watched.join(after=at(5)).told == ["snapshot", "+b@2", "+c@7"]


def test_the_removals_that_are_remembered_are_bounded() -> None:
    watched = Range(limit=2)
    watched.join()
    watched.answer(whole(through=0))
    for offset in range(1, REMOVALS + 10):
        watched.answer(news(gone(f"m{offset}", offset), after=offset - 1, through=offset))
    resumed = watched.join(after=at(1))
    asked = watched.due()[1]

    assert resumed.told == []
    assert (asked.after, asked.whole) == (at(1), True)


def test_whoever_knows_more_than_the_replica_is_not_taken_back() -> None:
    watched = Range()
    resumed = watched.join(after=at(9))
    watch, _ = watched.due()
    watched.hub.answered(watch, RangeAnswer(at(9), at(5), True, False, [row("a", 1)], [], True))
    watched.answer(news(row("a", 8), after=5, through=8))
    watched.answer(news(row("a", 12), after=8, through=12))

    assert resumed.told == ["recovered", "~a@12"]
