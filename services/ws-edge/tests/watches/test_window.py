"""Each answer's changes to a range, the subscribers that get them, and where these may resume."""

from dataclasses import replace

import pytest

from testkit.ws_edge.answers import ALICE, BETS, BOARDS, BOB, STAFF, Asked, at, gone, news, resuming, row, whole
from ws_edge.model.states import Position
from ws_edge.model.stores import Store
from ws_edge.upstream.queries import Progress, RangeResult
from ws_edge.watches.token import Resumption


def test_a_range_begins_with_all_rows_and_goes_on_with_what_changes() -> None:
    asked = Asked()
    phone = asked.join()
    first = asked.answer(whole(row("a", 1), row("b", 2), through=5))
    second = asked.answer(news(row("c", 6), row("a", 7), gone("b", 8), after=5, through=8))

    assert phone.events == ["snapshot", "a@1", "b@2", "c@6", "a@7", "-b@8"]
    assert (first.after, first.whole) == (None, True)
    assert (second.after, second.whole) == (at(5), False)
    assert asked.resumption(phone) == Resumption(at(8))


def test_an_empty_range_is_known_and_can_be_resumed() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(through=5))

    assert phone.events == ["snapshot"]
    assert asked.resumption(phone) == Resumption(at(5))


def test_a_row_under_another_sort_value_changes_and_does_not_leave() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 1, sort="1"), through=5))
    asked.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="2"), after=5, through=7))
    asked.answer(news(row("a", 8, sort="3"), after=7, through=8))
    asked.answer(news(gone("a", 9, sort="2"), after=8, through=9))

    assert phone.events == ["snapshot", "a@1", "a@7", "a@8"]
    assert phone.taken[-1].state.key.sort == "3"


def test_a_change_that_is_repeated_or_late_is_told_once() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 3), through=5))
    asked.answer(news(row("a", 7), through=6, after=5))
    asked.answer(news(row("a", 7), through=7, after=6))
    asked.answer(whole(row("a", 3), through=4))
    asked.answer(news(row("a", 6), through=6, after=5))
    asked.answer(whole(row("a", 3), through=7))

    assert phone.events == ["snapshot", "a@3", "a@7"]


def test_an_answer_with_all_rows_tells_only_the_differences() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 1), row("b", 2), through=5))
    asked.answer(whole(row("b", 2), row("c", 8), through=9))

    assert phone.events[3:] == ["-a@9", "c@8"]


def test_another_epoch_tells_only_the_differences_and_a_replica_of_the_old_one_is_ignored() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 10), row("b", 12), through=15))
    asked.answer(whole(row("a", 1, epoch=2), through=3, epoch=2))
    asked.answer(whole(row("b", 12), through=15))

    assert phone.events[3:] == ["a@1", "-b@3"]
    assert asked.resumption(phone) == Resumption(at(3, epoch=2))


def test_a_token_of_an_epoch_that_was_left_begins_with_all_rows() -> None:
    asked = Asked()
    asked.join()
    asked.answer(whole(row("a", 10), through=15))
    asked.answer(whole(row("a", 1, epoch=2), through=3, epoch=2))

    assert asked.join(after=at(15)).events == ["snapshot", "a@1"]


def test_an_epoch_that_was_left_by_mistake_comes_back_when_replicas_keep_answering_with_it() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 10), through=15))
    asked.answer(whole(row("a", 1, epoch=2), through=3, epoch=2))
    for _ in range(3):
        asked.answer(whole(row("a", 16), through=16))

    assert phone.events[2:] == ["a@1", "a@16"]
    assert asked.resumption(phone) == Resumption(at(16))


@pytest.mark.parametrize("read_in_between", [False, True])
def test_a_row_that_is_shown_where_it_was_and_removed_there_is_found_where_it_is(read_in_between: bool) -> None:
    """A late replay may do so. The row is not sent again, because nothing has changed in it."""
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 3, sort="2"), through=5))
    if read_in_between:
        asked.answer(whole(row("a", 6, sort="1"), row("a", 3, sort="2"), through=6))
    else:
        asked.answer(news(row("a", 6, sort="1"), after=5, through=6))
    asked.answer(news(gone("a", 7, sort="1"), after=6, through=7))
    before = asked.resumption(phone)
    query = asked.answer(whole(row("a", 3, sort="2"), through=7))

    assert query.whole
    assert phone.events[2:] == ["a@6", "-a@7", "a@3"]
    assert before == Resumption(at(6))
    assert asked.resumption(phone) == Resumption(at(7))


def test_a_window_lets_the_first_in_and_the_last_out() -> None:
    asked = Asked(limit=2)
    phone = asked.join()
    asked.answer(whole(row("b", 1), row("d", 2), through=5))
    asked.answer(news(row("c", 6), row("e", 7), after=5, through=7))

    assert phone.events[3:] == ["c@6", "-d@7"]
    assert list(asked.due()[0].window.rows) == ["b", "c"]


def test_a_window_that_has_lost_a_row_is_read_anew_and_gives_no_token_before() -> None:
    """A client that resumed from it would never get the row that moved up into the window."""
    asked = Asked(limit=2)
    phone = asked.join()
    asked.answer(whole(row("a", 1), row("b", 2), through=5, more=True))
    asked.answer(news(gone("a", 6), row("z", 7), after=5, through=7))
    incomplete = asked.resumption(phone)
    query = asked.answer(whole(row("b", 2), row("c", 3), through=7, more=True))

    assert query.whole
    assert phone.events[3:] == ["-a@7", "c@3"]
    assert (incomplete, asked.resumption(phone)) == (Resumption(at(5)), Resumption(at(7)))
    assert not asked.due()[1].whole


def test_a_row_that_moves_behind_the_window_leaves_it() -> None:
    asked = Asked(limit=2)
    phone = asked.join()
    asked.answer(whole(row("a", 1, sort="1"), row("b", 2, sort="2"), through=5, more=True))
    asked.answer(news(gone("a", 6, sort="1"), row("a", 7, sort="9"), after=5, through=7))

    assert phone.events[3:] == ["-a@7"]
    assert asked.due()[1].whole


def test_a_reversed_window_holds_the_last() -> None:
    asked = Asked(limit=2, reverse=True)
    phone = asked.join()
    asked.answer(whole(row("d", 1), row("c", 2), through=5, more=True))
    asked.answer(news(row("e", 6), row("a", 7), after=5, through=7))

    assert phone.events[3:] == ["e@6", "-c@7"]


def test_a_later_subscriber_begins_with_what_is_known() -> None:
    asked = Asked()
    phones = [asked.join() for _ in range(100)]
    asked.answer(whole(row("a", 1), through=5))
    late = asked.join()

    assert all(phone.events == ["snapshot", "a@1"] for phone in (*phones, late))
    assert asked.hub.watches == 1
    assert asked.hub.take_due() == []


def test_a_slow_reader_gets_the_newest_of_each_row_and_nothing_of_rows_that_came_and_went() -> None:
    asked = Asked()
    phone = asked.join()
    asked.answer(whole(row("a", 1), row("b", 2), through=5))
    phone.reads = False
    asked.answer(news(row("a", 6), row("c", 7), row("d", 8), after=5, through=8))
    asked.answer(news(row("a", 9), gone("c", 10), gone("b", 11), after=8, through=11))
    skipped = asked.hub.skipped
    phone.reads = True
    phone.ready(asked.subscription)

    assert phone.events[3:] == ["a@9", "d@8", "-b@11"]
    assert [each.skipped for each in phone.taken[2:]] == [1, 0, 0]
    assert skipped == asked.hub.skipped == 2, "they count when they are replaced, as who reads nothing never takes them"
    assert asked.resumption(phone) == Resumption(at(11))


def test_a_row_that_becomes_somebody_elses_leaves_for_the_one_and_enters_for_the_other() -> None:
    asked = Asked(BETS, limit=1000)
    alice, bob, staff = (asked.join(consumer=consumer) for consumer in (ALICE, BOB, STAFF))
    asked.answer(whole(row("a", 1, owner="alice"), row("b", 2, owner="bob"), through=5))
    asked.answer(news(row("a", 6, owner="bob"), after=5, through=6))
    asked.answer(news(gone("a", 7), after=6, through=7))

    assert alice.events == ["snapshot", "a@1", "-a@6"]
    assert bob.events == ["snapshot", "b@2", "a@6", "-a@7"]
    assert staff.events == ["snapshot", "a@1", "b@2", "a@6", "-a@7"]


def test_a_resuming_subscriber_gets_what_it_missed_and_nothing_else() -> None:
    asked = Asked()
    asked.join()
    asked.answer(whole(row("a", 1), row("b", 2), row("c", 3), through=5))
    asked.answer(news(row("a", 6), gone("b", 7), row("d", 8), after=5, through=8))

    assert asked.join(after=at(6)).events == ["resumed", "-b@8", "d@8"]


def test_an_edge_that_does_not_know_the_range_asks_for_the_removals_that_a_resuming_subscriber_missed() -> None:
    asked = Asked()
    resumed = asked.join(after=at(6))
    query = asked.answer(resuming(row("a", 1), row("d", 8), gone("b", 7), after=6, through=9))
    again = asked.join(after=at(6))

    assert (query.after, query.whole) == (at(6), True)
    assert resumed.events == again.events == ["resumed", "-b@9", "d@8"]


def test_a_subscriber_that_resumes_from_further_back_makes_the_edge_ask_again() -> None:
    asked = Asked()
    first = asked.join(after=at(8))
    watch, _ = asked.due()
    late = asked.join(after=at(6))
    asked.hub.answered(watch, resuming(row("a", 1), after=8, through=9))
    events_at_first = list(late.events)
    query = asked.answer(resuming(row("a", 1), gone("b", 7), after=6, through=9))

    assert first.events == ["resumed"]
    assert events_at_first == []
    assert (query.after, query.whole) == (at(6), True)
    assert late.events == ["resumed", "-b@9"]


def test_a_subscriber_that_comes_during_a_read_makes_the_edge_ask_again() -> None:
    asked = Asked()
    asked.join(after=at(8))
    asked.answer(resuming(row("a", 1), after=8, through=9))
    watch, _ = asked.due()
    late = asked.join(after=at(6))
    asked.hub.unchanged(watch, Progress())
    asked.answer(resuming(row("a", 1), gone("b", 7), after=6, through=9))

    assert late.events == ["resumed", "-b@9"]


def test_a_replica_that_is_behind_can_report_earlier_removals() -> None:
    asked = Asked()
    asked.join()
    asked.answer(whole(row("a", 1), row("c", 2), through=9))
    asked.answer(news(row("d", 11), gone("c", 12), after=9, through=12))
    resumed = asked.join(after=at(6))
    asked.answer(resuming(row("a", 1), gone("b", 7), gone("c", 8), after=6, through=10))

    assert resumed.events == ["resumed", "-b@12", "d@11", "-c@12"]


def test_a_replica_that_is_too_far_behind_cannot_report_earlier_removals() -> None:
    asked = Asked()
    asked.join()
    asked.answer(whole(row("a", 1), through=9))
    resumed = asked.join(after=at(6))
    asked.answer(resuming(row("a", 1), gone("b", 7), after=6, through=8))

    assert resumed.events == ["snapshot", "a@1"]


@pytest.mark.parametrize(
    ("store", "after"), [(BOARDS, at(5)), (BOARDS, at(6, epoch=2)), (BETS, at(6))], ids=["old", "epoch", "hidden rows"]
)
def test_all_rows_come_when_it_is_uncertain_what_a_resuming_subscriber_missed(store: Store, after: Position) -> None:
    asked = Asked(store)
    resumed = asked.join(after=after)
    watch, _ = asked.due()
    rows = [row("a", 1, owner="alice" if store is BETS else row("a", 1).owner)]
    asked.hub.answered(watch, RangeResult(after, at(9), True, False, rows, [], after == at(6)))

    assert resumed.events == ["snapshot", "a@1"]


def test_a_window_that_may_have_been_full_is_not_resumed() -> None:
    asked = Asked(limit=2)
    asked.join()
    asked.answer(whole(row("a", 1), row("b", 2), through=5))
    asked.answer(news(gone("a", 6), after=5, through=6))
    asked.answer(news(row("c", 7), after=6, through=7))

    assert asked.join(after=at(6)).events == ["resumed", "c@7"]
    assert asked.join(after=at(5)).events == ["snapshot", "b@2", "c@7"]


def test_the_removals_that_are_remembered_are_bounded() -> None:
    asked = Asked(limit=2)
    asked.join()
    asked.answer(whole(through=0))
    for offset in range(1, 10):
        asked.answer(news(gone(f"m{offset}", offset), after=offset - 1, through=offset))
    knowing, resumed = (asked.join(after=at(offset)) for offset in (8, 1))
    query = asked.due()[1]

    assert knowing.events == ["resumed", "-m9@9"]
    assert resumed.events == []
    assert (query.after, query.whole) == (at(1), True)


def test_a_subscriber_waits_for_a_replica_that_knows_the_rows_beyond_its_token() -> None:
    asked = Asked()
    phone = asked.join(after=at(5), ahead=4)
    asked.answer(resuming(row("a", 7), after=5, through=8))
    before = list(phone.events)
    asked.answer(news(row("a", 9), after=8, through=9))

    assert before == []
    assert phone.events == ["resumed", "a@9"]


def test_a_subscriber_that_is_ahead_of_the_replica_waits_and_gets_no_row_twice() -> None:
    asked = Asked()
    ahead = asked.join(after=at(9))
    asked.answer(resuming(after=9, through=5))
    late = asked.join(after=at(3))
    query = asked.answer(resuming(row("a", 7), after=3, through=10))

    assert (query.after, query.whole) == (at(3), True)
    assert ahead.events == ["resumed"]
    assert late.events == ["resumed", "a@7"]


@pytest.mark.parametrize("lag_ms", [0, 40_000])
def test_a_token_ahead_of_all_that_there_is_begins_anew_once_no_lag_explains_it(lag_ms: int) -> None:
    asked = Asked()
    phone = asked.join(after=at(10**9))
    asked.answer(replace(resuming(row("a", 1), after=10**9, through=5), lag_ms=lag_ms))
    before = list(phone.events)
    asked.clock.now += 40
    watch, _ = asked.due()
    asked.hub.unchanged(watch, Progress(at(5), lag_ms))

    assert before == []
    assert phone.events == ([] if lag_ms else ["snapshot", "a@1"])


def test_a_replica_that_is_behind_a_subscriber_is_asked_at_the_interval_alone() -> None:
    asked = Asked()
    ahead = asked.join(after=at(9))
    asked.answer(resuming(after=9, through=5))

    assert asked.hub.take_due() == []
    asked.clock.now += 3.0
    blind_s = asked.subscription.blind_s(asked.clock.now)
    watch, _ = asked.due()
    asked.hub.unchanged(watch, Progress(at(9)))
    assert blind_s > 3
    assert ahead.events == ["resumed"]


@pytest.mark.parametrize("other", [at(0, epoch=0), at(9, epoch=9)])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_token_of_another_epoch_costs_no_other_subscriber_its_resumption(other: Position, is_first: bool) -> None:
    asked = Asked()
    phones = [asked.join(after=after) for after in ((other, at(6)) if is_first else (at(6), other))]
    if not is_first:
        phones.reverse()
    answers = {
        1: resuming(row("a", 1), row("d", 8), gone("b", 7), after=6, through=9),
        other.epoch: whole(row("a", 1), row("d", 8), through=9),
    }
    for _ in range(1 + is_first):
        watch, query = asked.due()
        assert query.after is not None
        asked.hub.answered(watch, answers[query.after.epoch])

    assert [phone.events for phone in phones] == [["snapshot", "a@1", "d@8"], ["resumed", "-b@9", "d@8"]]
    assert asked.hub.take_due() == []


@pytest.mark.parametrize("others", [(), tuple("abdfhz")])
def test_rows_of_others_count_for_no_limit(others: tuple[str, ...]) -> None:
    asked = Asked(BETS, limit=2)
    phone = asked.join()
    rows = {name: row(name, 5, owner="bob") for name in others}
    rows |= {name: row(name, 5, owner="alice") for name in "ceg"}
    asked.answer(whole(*(rows[name] for name in sorted(rows)), through=10))
    asked.answer(news(gone("c", 12), after=10, through=12))
    asked.answer(news(row("d", 13, owner="alice"), after=12, through=13))
    late = asked.join()

    assert phone.events == ["snapshot", "c@5", "e@5", "-c@12", "g@5", "-g@13", "d@13"]
    assert late.events == ["snapshot", "d@13", "e@5"]
