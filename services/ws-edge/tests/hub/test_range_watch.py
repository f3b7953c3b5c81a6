"""Each answer's changes to a range, the subscribers that get them, and where these may resume."""

import pytest

from testkit.ws_edge.ranges import ALICE, BOB, STAFF, Range, at, gone, news, row, whole
from ws_edge.hub.range_watch import RangeWatch
from ws_edge.model.states import Position
from ws_edge.upstream.queries import Progress, RangeResult


def test_a_range_begins_with_all_members_and_goes_on_with_what_changes() -> None:
    watched = Range()
    phone = watched.join()
    first = watched.answer(whole(row("a", 1), row("b", 2), through=5))
    second = watched.answer(news(row("c", 6), row("a", 7), gone("b", 8), after=5, through=8))

    assert phone.events == ["snapshot", "+a@1", "+b@2", "+c@6", "~a@7", "-b@8"]
    assert (first.after, first.whole) == (None, True)
    assert (second.after, second.whole) == (at(5), False)
    assert watched.subscription.position == at(8)


def test_an_empty_range_is_known_and_can_be_resumed() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(through=5))

    assert phone.events == ["snapshot"]
    assert watched.subscription.position == at(5)


def test_a_member_under_another_sort_value_changes_and_does_not_leave() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 1, sort="1"), through=5))
    watched.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="2"), after=5, through=7))
    watched.answer(news(row("a", 8, sort="3"), after=7, through=8))
    watched.answer(news(gone("a", 9, sort="2"), after=8, through=9))

    assert phone.events == ["snapshot", "+a@1", "~a@7", "~a@8"]
    assert phone.taken[-1].state.key.sort == "3"


def test_a_change_that_is_repeated_or_late_is_delivered_once() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 3), through=5))
    watched.answer(news(row("a", 7), through=6, after=5))
    watched.answer(news(row("a", 7), through=7, after=6))
    watched.answer(whole(row("a", 3), through=4))
    watched.answer(news(row("a", 6), through=6, after=5))
    watched.answer(whole(row("a", 3), through=7))

    assert phone.events == ["snapshot", "+a@3", "~a@7"]


def test_an_answer_with_all_members_delivers_only_the_differences() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5))
    watched.answer(whole(row("b", 2), row("c", 8), through=9))

    assert phone.events[3:] == ["-a@9", "+c@8"]


def test_another_epoch_delivers_only_the_differences_and_a_replica_of_the_old_one_is_ignored() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 10), row("b", 12), through=15))
    watched.answer(whole(row("a", 1, epoch=2), through=3, epoch=2))
    watched.answer(whole(row("b", 12), through=15))

    assert phone.events[3:] == ["~a@1", "-b@3"]


@pytest.mark.parametrize("read_in_between", [False, True])
def test_a_member_that_is_shown_where_it_was_and_removed_there_is_found_where_it_is(read_in_between: bool) -> None:
    """A late replay may do so: the row itself is not told again, because nothing has changed in it."""
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 3, sort="2"), through=5))
    if read_in_between:
        watched.answer(whole(row("a", 6, sort="1"), row("a", 3, sort="2"), through=6))
    else:
        watched.answer(news(row("a", 6, sort="1"), after=5, through=6))
    watched.answer(news(gone("a", 7, sort="1"), after=6, through=7))
    assert watched.subscription.position is None
    query = watched.answer(whole(row("a", 3, sort="2"), through=7))

    assert query.whole
    assert phone.events[2:] == ["~a@6", "-a@7", "+a@3"]
    assert watched.subscription.position == at(7)


def test_a_window_lets_the_first_in_and_the_last_out() -> None:
    watched = Range(limit=2)
    phone = watched.join()
    watched.answer(whole(row("b", 1), row("d", 2), through=5))
    watched.answer(news(row("c", 6), row("e", 7), after=5, through=7))

    assert phone.events[3:] == ["+c@6", "-d@7"]
    watch, _ = watched.due()
    assert isinstance(watch, RangeWatch)
    assert list(watch.members) == ["b", "c"]


def test_a_window_that_has_lost_a_member_is_read_anew() -> None:
    watched = Range(limit=2)
    phone = watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5, more=True))
    watched.answer(news(gone("a", 6), row("z", 7), after=5, through=7))
    query = watched.answer(whole(row("b", 2), row("c", 3), through=7, more=True))

    assert query.whole
    assert phone.events[3:] == ["-a@6", "+c@3"]
    assert not watched.due()[1].whole


def test_no_position_is_given_while_a_member_of_the_window_is_unknown() -> None:
    """A client that resumed from it would never get the member that moved up into the window."""
    watched = Range(limit=2)
    watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5, more=True))
    watched.answer(news(gone("a", 6), after=5, through=6))
    incomplete = watched.subscription.position
    watched.answer(whole(row("b", 2), row("c", 3), through=6))

    assert (incomplete, watched.subscription.position) == (None, at(6))


def test_a_member_that_moves_behind_the_window_leaves_it() -> None:
    watched = Range(limit=2)
    phone = watched.join()
    watched.answer(whole(row("a", 1, sort="1"), row("b", 2, sort="2"), through=5, more=True))
    watched.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="9"), after=5, through=7))

    assert phone.events[3:] == ["-a@6"]
    assert watched.due()[1].whole


def test_a_reversed_window_holds_the_last() -> None:
    watched = Range(limit=2, reverse=True)
    phone = watched.join()
    watched.answer(whole(row("d", 1), row("c", 2), through=5, more=True))
    watched.answer(news(row("e", 6), row("a", 7), after=5, through=7))

    assert phone.events[3:] == ["+e@6", "-c@7"]


def test_one_read_serves_all_subscribers_of_a_range() -> None:
    watched = Range()
    phones = [watched.join() for _ in range(100)]
    watched.answer(whole(row("a", 1), through=5))
    watched.answer(news(row("a", 6), after=5, through=6))

    assert watched.hub.unique_keys == 1
    assert all(phone.events == ["snapshot", "+a@1", "~a@6"] for phone in phones)


def test_a_later_subscriber_begins_with_what_is_known() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), through=5))
    late = watched.join()

    assert late.events == ["snapshot", "+a@1"]
    assert watched.hub.take_due() == []


def test_a_slow_reader_gets_the_newest_of_each_member_and_nothing_of_members_that_came_and_went() -> None:
    watched = Range()
    phone = watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5))
    phone.reads = False
    watched.answer(news(row("a", 6), row("c", 7), row("d", 8), after=5, through=8))
    watched.answer(news(row("a", 9), gone("c", 10), gone("b", 11), after=8, through=11))
    behind = watched.subscription.position
    phone.reads = True
    phone.changed(watched.subscription)

    assert behind is None
    assert phone.events[3:] == ["+d@8", "~a@9", "-b@11"]
    assert [change.skipped for change in phone.taken[2:]] == [0, 1, 0]
    assert watched.subscription.position == at(11)


def test_a_row_that_becomes_somebody_elses_leaves_for_the_one_and_enters_for_the_other() -> None:
    watched = Range()
    phones = {consumer.id: watched.join(consumer=consumer, sees_all=False) for consumer in (ALICE, BOB, STAFF)}
    watched.answer(whole(row("a", 1), row("b", 2, owner="bob"), through=5))
    watched.answer(news(row("a", 6, owner="bob"), after=5, through=6))
    watched.answer(news(gone("a", 7), after=6, through=7))

    assert phones["alice"].events == ["snapshot", "+a@1", "-a@6"]
    assert phones["bob"].events == ["snapshot", "+b@2", "+a@6", "-a@7"]
    assert phones[""].events == ["snapshot", "+a@1", "+b@2", "~a@6", "-a@7"]


def test_a_resuming_subscriber_gets_what_it_missed_and_nothing_else() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), row("c", 3), through=5))
    watched.answer(news(row("a", 6), gone("b", 7), row("d", 8), after=5, through=8))
    resumed = watched.join(after=at(6))

    assert resumed.events == ["recovered", "-b@7", "~d@8"]


def test_a_member_that_moved_before_it_left_leaves_under_the_key_that_the_subscriber_has() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1, sort="1"), row("b", 2), through=5))
    watched.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="2"), after=5, through=7))
    watched.answer(news(gone("a", 8, sort="2"), after=7, through=8))
    resumed = watched.join(after=at(5))

    assert resumed.events == ["recovered", "-a@8"]
    assert resumed.taken[0].state.key.sort == "1"


def test_an_edge_that_does_not_know_the_range_asks_for_the_removals_that_a_resuming_subscriber_missed() -> None:
    watched = Range()
    resumed = watched.join(after=at(6))
    watch, query = watched.due()
    removals = [gone("b", 7)]
    watched.hub.answered(watch, RangeResult(at(6), at(9), True, False, [row("a", 1), row("d", 8)], removals, True))
    again = watched.join(after=at(6))

    assert (query.after, query.whole) == (at(6), True)
    assert resumed.events == again.events == ["recovered", "-b@7", "~d@8"]


def test_a_subscriber_that_resumes_from_further_back_makes_the_edge_ask_again() -> None:
    watched = Range()
    first = watched.join(after=at(8))
    watch, _ = watched.due()
    late = watched.join(after=at(6))
    watched.hub.answered(watch, RangeResult(at(8), at(9), True, False, [row("a", 1)], [], True))
    events_at_first = list(late.events)
    query = watched.answer(RangeResult(at(6), at(9), True, False, [row("a", 1)], [gone("b", 7)], True))

    assert first.events == ["recovered"]
    assert events_at_first == []
    assert (query.after, query.whole) == (at(6), True)
    assert late.events == ["recovered", "-b@7"]


def test_a_replica_that_is_behind_can_report_earlier_removals() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), row("c", 2), through=9))
    watched.answer(news(row("d", 11), gone("c", 12), after=9, through=12))
    resumed = watched.join(after=at(6))
    watched.answer(RangeResult(at(6), at(10), True, False, [row("a", 1)], [gone("b", 7), gone("c", 8)], True))

    assert resumed.events == ["recovered", "-b@7", "~d@11", "-c@12"]


def test_a_replica_that_is_too_far_behind_cannot_report_earlier_removals() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), through=9))
    resumed = watched.join(after=at(6))
    watched.answer(RangeResult(at(6), at(8), True, False, [row("a", 1)], [gone("b", 7)], True))

    assert resumed.events == ["snapshot", "+a@1"]


def test_a_subscriber_that_comes_during_a_read_makes_the_edge_ask_again() -> None:
    watched = Range()
    watched.join(after=at(8))
    watched.answer(RangeResult(at(8), at(9), True, False, [row("a", 1)], [], True))
    watch, _ = watched.due()
    late = watched.join(after=at(6))
    watched.hub.unchanged(watch, Progress())
    watched.answer(RangeResult(at(6), at(9), True, False, [row("a", 1)], [gone("b", 7)], True))

    assert late.events == ["recovered", "-b@7"]


@pytest.mark.parametrize(
    ("after", "sees_all"), [(at(5), True), (at(6, epoch=2), True), (at(6), False)], ids=["old", "epoch", "hidden rows"]
)
def test_a_resuming_subscriber_gets_the_whole_range_when_it_is_uncertain_what_it_missed(
    after: Position, sees_all: bool
) -> None:
    watched = Range()
    resumed = watched.join(after=after, sees_all=sees_all)
    watch, _ = watched.due()
    watched.hub.answered(watch, RangeResult(after, at(9), True, False, [row("a", 1)], [], after == at(6)))

    assert resumed.events == ["snapshot", "+a@1"]


def test_a_window_that_may_have_been_full_is_not_resumed() -> None:
    watched = Range(limit=2)
    watched.join()
    watched.answer(whole(row("a", 1), row("b", 2), through=5))
    watched.answer(news(gone("a", 6), after=5, through=6))
    watched.answer(news(row("c", 7), after=6, through=7))

    assert watched.join(after=at(6)).events == ["recovered", "~c@7"]
    assert watched.join(after=at(5)).events == ["snapshot", "+b@2", "+c@7"]


def test_the_removals_that_are_remembered_are_bounded() -> None:
    watched = Range(limit=2)
    watched.join()
    watched.answer(whole(through=0))
    for offset in range(1, 10):
        watched.answer(news(gone(f"m{offset}", offset), after=offset - 1, through=offset))
    knowing, resumed = (watched.join(after=at(offset)) for offset in (8, 1))
    query = watched.due()[1]

    assert knowing.events == ["recovered", "-m9@9"]
    assert resumed.events == []
    assert (query.after, query.whole) == (at(1), True)


def test_a_subscriber_that_is_ahead_of_the_replica_is_not_taken_back() -> None:
    watched = Range()
    resumed = watched.join(after=at(9))
    watch, _ = watched.due()
    watched.hub.answered(watch, RangeResult(at(9), at(5), True, False, [row("a", 1)], [], True))
    watched.answer(news(row("a", 8), after=5, through=8))
    watched.answer(news(row("a", 12), after=8, through=12))

    assert resumed.events == ["recovered", "~a@12"]


def test_a_subscriber_that_is_ahead_of_the_replica_waits_and_gets_no_row_twice() -> None:
    watched = Range()
    ahead = watched.join(after=at(9))
    watched.answer(RangeResult(at(9), at(5), True, False, [], [], True))
    watched.join(after=at(3))
    asked = watched.answer(RangeResult(at(3), at(10), True, False, [row("a", 7)], [], True))

    assert (asked.after, asked.whole) == (at(3), True)
    assert ahead.events == ["recovered"]
    assert watched.subscription.position == at(10)


def test_a_replica_that_is_behind_a_subscriber_is_asked_at_the_interval_alone() -> None:
    watched = Range()
    ahead = watched.join(after=at(9))
    watch, _ = watched.due()
    watched.hub.answered(watch, RangeResult(at(9), at(5), True, False, [], [], True))

    assert watched.hub.take_due() == []
    watched.clock.now += 3.0
    watched.hub.advance()
    watch, _ = watched.due()
    watched.hub.unchanged(watch, Progress(at(9)))
    assert ahead.events == ["delayed", "recovered"]
