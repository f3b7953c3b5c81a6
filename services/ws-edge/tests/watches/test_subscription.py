"""One subscription gets changes of its fields only, and knows whether it is up to date."""

import json
from dataclasses import replace

import pytest

from testkit.ws_edge.answers import ALICE, BOARDS, SCORES, STAFF, Asked, at, keyed, news, row, whole
from ws_edge.errors import UnavailableError
from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule
from ws_edge.model.json_rows import decode
from ws_edge.model.private_fields import NOBODY, PrivateField, PrivateRow
from ws_edge.model.states import KeyState, StoreKey
from ws_edge.upstream.queries import Progress
from ws_edge.watches.token import Resumption

NAMES = ("a", "b")
HAND = (PrivateField(("hand",), "player"),)


def shown(offset: int, **values: int) -> KeyState:
    """Returns the row of a key with these values."""
    return replace(row("k1", offset), row=decode(json.dumps(values).encode()))


def test_a_change_of_no_field_that_is_told_is_no_news_and_brings_a_bookmark() -> None:
    asked = Asked(fields=NAMES)
    phone = asked.join()
    asked.answer(whole(shown(1, a=1, b=1, c=1), through=1))
    asked.answer(whole(shown(2, a=1, b=1, c=2), through=2))
    phone.token = asked.subscription.bookmark()

    assert phone.events == ["snapshot", "k1@1"]
    assert asked.resumption(phone) == Resumption(at(2))
    assert asked.subscription.bookmark() == ""


@pytest.mark.parametrize("reads", [True, False])
def test_a_change_that_others_alone_see_is_no_news_and_no_skipped_version(reads: bool) -> None:
    asked = Asked(replace(SCORES, private=HAND))
    phone = asked.join()
    asked.answer(keyed(dealt(1, "ace")))
    asked.answer(keyed(dealt(2, "king")))
    phone.reads = reads
    asked.answer(keyed(dealt(3, "king", round=2)))
    for offset, hand in enumerate(("ten", "two"), 4):
        asked.answer(keyed(dealt(offset, hand, round=2)))
    phone.reads = True
    phone.ready(asked.subscription)

    assert phone.events == ["snapshot", "1", "3" if reads else "5"]
    assert [taken.skipped for taken in phone.taken] == [0, 0]


@pytest.mark.parametrize(("consumer", "begins"), [(ALICE, "snapshot"), (STAFF, "resumed")])
def test_a_resumption_does_not_tell_others_whether_a_private_field_has_changed(consumer: Consumer, begins: str) -> None:
    asked = Asked(replace(BOARDS, private=HAND))
    phone = asked.join(consumer=consumer)
    asked.answer(whole(dealt(1, "ace", name="a"), through=1))
    asked.answer(news(dealt(2, "king", name="a"), after=1, through=2))
    watch, _ = asked.due()
    asked.hub.unchanged(watch, Progress(at(3)))
    has_bookmark = asked.subscription.bookmark() != ""
    phone = asked.join(after=at(1), consumer=consumer)
    asked.answer(news(dealt(4, "queen", name="a"), after=3, through=4))

    assert phone.events[0] == begins
    assert has_bookmark == (begins == "resumed")


def test_neither_the_order_of_changes_nor_a_token_tells_which_row_has_a_newer_private_part() -> None:
    asked = Asked(replace(BOARDS, private=HAND))
    phone = asked.join()
    asked.answer(whole(dealt(1, "ace", name="a"), dealt(2, "ace", name="b"), through=2))
    phone.reads = False
    asked.answer(news(dealt(5, "ace", name="b", round=1), dealt(6, "ten", name="a", round=1), after=2, through=9))
    phone.reads = True
    phone.ready(asked.subscription)

    assert phone.events == ["snapshot", "a@1", "b@2", "a@6", "b@5"]
    assert asked.resumption(phone) == Resumption(at(9))


def test_it_is_blind_while_nobody_answers_and_while_answers_are_old() -> None:
    asked = Asked()
    asked.join()
    asked.clock.now += 4
    waiting = asked.subscription.blind_s(asked.clock.now)
    asked.answer(whole(row("k1", 1), through=1))
    seeing = asked.subscription.blind_s(asked.clock.now)
    watch, _ = asked.due()
    asked.hub.failed(watch, UnavailableError("away"))
    asked.clock.now += 5
    failing = asked.subscription.blind_s(asked.clock.now)
    watch, _ = asked.due()
    asked.hub.unchanged(watch, Progress(None, 12_000))
    lagging = asked.subscription.blind_s(asked.clock.now)

    assert waiting >= 4
    assert seeing == 0
    assert failing >= 5
    assert lagging == 12


def test_a_key_that_is_gone_by_when_the_edge_knows_as_much_as_its_client_has_left() -> None:
    asked = Asked(SCORES)
    asked.join()
    asked.answer(keyed(of_key(95)))
    phone = asked.join(after=at(100))  # of another edge, which had a row at 100
    asked.answer(keyed(of_key(105)))

    assert phone.events == ["resumed", "-105"]
    assert asked.resumption(phone) == Resumption(at(105))


@pytest.mark.parametrize("token", [100, 110])
def test_a_key_without_a_row_to_see_begins_anew_whether_there_is_a_hidden_row_or_not(token: int) -> None:
    """So the row leaves which was Alice's where this edge was not looking, and others are not told of its changes."""
    asked = Asked(replace(SCORES, rule=OwnerRule("owner")))
    asked.join()
    asked.answer(keyed(of_key(95, "bob")))
    phone = asked.join(after=at(token))
    asked.answer(replace(keyed(of_key(105, "bob")), through=at(120)))

    assert phone.events == ["snapshot"]


@pytest.mark.parametrize("lag_ms", [0, 40_000])
def test_a_key_whose_token_is_ahead_of_all_that_there_is_begins_anew_once_no_lag_explains_it(lag_ms: int) -> None:
    """As after an election that lost records: else all versions are left out until the token is passed."""
    asked = Asked(SCORES)
    phone = asked.join(after=at(10**9))
    asked.answer(replace(keyed(row("", 1)), lag_ms=lag_ms))
    before = list(phone.events)
    asked.clock.now += 40
    asked.answer(replace(keyed(row("", 2)), lag_ms=lag_ms))

    assert before == []
    assert phone.events == ([] if lag_ms else ["snapshot", "2"])


def test_a_key_resumes_once_its_partition_is_read_through_its_token() -> None:
    """Replicas may hold one version at two positions: a replay wrote it twice, and one of them has it once."""
    asked = Asked(SCORES)
    asked.join()
    asked.answer(replace(keyed(row("", 5)), through=at(6)))
    phone = asked.join(after=at(8))
    before = list(phone.events)
    watch, _ = asked.due()
    asked.hub.unchanged(watch, Progress(at(8)))
    late = asked.join(after=at(7))
    asked.answer(keyed(row("", 9)))

    assert before == []
    assert phone.events == late.events == ["resumed", "9"]


def dealt(offset: int, hand: str, name: str = "", **public: int) -> KeyState:
    """Returns the row of a game in which Bob alone sees the hand."""
    private = PrivateRow(decode(json.dumps({"player": "bob", "hand": hand, **public}).encode()), HAND)
    return KeyState(StoreKey("games", "g", name, name), at(offset), private.seen_by(NOBODY), EVERYONE, private=private)


def of_key(offset: int, owner: str = "") -> KeyState:
    """Returns the row of a key and owner, or that there is none."""
    return KeyState(StoreKey("scores", "g"), at(offset), object() if owner else None, owner)
