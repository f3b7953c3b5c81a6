"""What each answer changes in a range, and who is told so."""

from ws_edge.testing.ranges import ALICE, BOB, STAFF, Range, at, gone, news, row, whole


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
