"""Keys wait in order, their names unite, and rounds end."""

from ws_edge.watches.pending import Pending


def taken(pending: Pending) -> list[tuple[str, frozenset[str] | None, int]]:
    entries = iter(pending.take, None)
    return [(key, entry.names, entry.skipped) for key, entry in entries]


def names(*each: str) -> frozenset[str]:
    return frozenset(each)


def test_names_of_versions_that_were_left_out_unite_and_the_entry_stays_where_it_is() -> None:
    pending = Pending()
    pending.add("k1", names("outcomes"), held=True)
    pending.add("k2", names("suspended"), held=True)
    pending.offered()
    pending.add("k1", names("suspended"), held=True)
    pending.begin_round()

    assert taken(pending) == [("k1", names("outcomes", "suspended"), 1), ("k2", names("suspended"), 0)]


def test_what_changes_before_the_subscriber_knows_of_it_is_not_skipped() -> None:
    pending = Pending()
    pending.add("k1", names("a"), held=True)
    pending.add("k1", names("b"), held=True)
    pending.begin_round()

    assert taken(pending) == [("k1", names("a", "b"), 0)]


def test_a_whole_row_stays_whole() -> None:
    pending = Pending()
    pending.begin(["k1"], held=True)
    pending.add("k1", names("a"), held=True)
    pending.add("k2", names("a"), held=True)
    pending.add("k2", None, held=True)
    pending.begin_round()

    assert taken(pending) == [("k1", None, 0), ("k2", None, 0)]


def test_a_round_ends_however_often_keys_change() -> None:
    pending = Pending()
    pending.begin(["k1", "k2"], held=False)
    pending.begin_round()
    rounds = []
    while (next_one := pending.take()) is not None:
        rounds.append(next_one[0])
        pending.add("k1", None, held=True)

    assert rounds == ["k1", "k2"]
    assert "k1" in pending


def test_after_an_error_the_next_version_is_whole_once() -> None:
    pending = Pending()
    pending.failed("k1")
    pending.add("k1", names("a"), held=True)
    pending.begin_round()
    first = taken(pending)
    pending.add("k1", names("a"), held=True)
    pending.begin_round()

    assert first == [("k1", None, 0)]
    assert taken(pending) == [("k1", names("a"), 0)]


def test_an_error_of_a_key_that_waits_again_makes_it_whole() -> None:
    pending = Pending()
    pending.add("k1", names("a"), held=True)
    pending.failed("k1")
    pending.begin_round()

    assert taken(pending) == [("k1", None, 0)]
