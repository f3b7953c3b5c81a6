"""From where a subscriber of a range may resume, and what it is told then."""

import pytest

from ws_edge.hub.range_watch import REMOVALS
from ws_edge.querying.questions import RangeAnswer
from ws_edge.states import Position
from ws_edge.testing.ranges import Range, at, gone, news, row, whole


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


def test_whoever_resumes_from_further_back_than_was_asked_for_has_it_ask_again() -> None:
    watched = Range()
    first = watched.join(after=at(8))
    watch, _ = watched.due()
    late = watched.join(after=at(6))
    watched.hub.answered(watch, RangeAnswer(at(8), at(9), True, False, [row("a", 1)], [], True))
    told_at_first = list(late.told)
    asked = watched.answer(RangeAnswer(at(6), at(9), True, False, [row("a", 1)], [gone("b", 7)], True))

    assert first.told == ["recovered"]
    assert told_at_first == []
    assert (asked.after, asked.whole) == (at(6), True)
    assert late.told == ["recovered", "-b@7"]


def test_a_replica_that_is_behind_may_tell_what_was_removed_before() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), row("c", 2), through=9))
    watched.answer(news(row("d", 11), gone("c", 12), after=9, through=12))
    resumed = watched.join(after=at(6))
    watched.answer(RangeAnswer(at(6), at(10), True, False, [row("a", 1)], [gone("b", 7), gone("c", 8)], True))

    assert resumed.told == ["recovered", "-b@7", "~d@11", "-c@12"]


def test_a_replica_that_is_too_far_behind_cannot_tell_what_was_removed_before() -> None:
    watched = Range()
    watched.join()
    watched.answer(whole(row("a", 1), through=9))
    resumed = watched.join(after=at(6))
    watched.answer(RangeAnswer(at(6), at(8), True, False, [row("a", 1)], [gone("b", 7)], True))

    assert resumed.told == ["snapshot", "+a@1"]


def test_whoever_comes_while_news_is_asked_for_has_it_ask_again() -> None:
    watched = Range()
    watched.join(after=at(8))
    watched.answer(RangeAnswer(at(8), at(9), True, False, [row("a", 1)], [], True))
    watch, _ = watched.due()
    late = watched.join(after=at(6))
    watched.hub.unchanged(watch)
    watched.answer(RangeAnswer(at(6), at(9), True, False, [row("a", 1)], [gone("b", 7)], True))

    assert late.told == ["recovered", "-b@7"]


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
