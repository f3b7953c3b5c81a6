"""A token holds a position, and only its own question can read it."""

from dataclasses import replace

import pytest
from google.protobuf.struct_pb2 import Value
from hypothesis import given
from hypothesis import strategies as st

from statecast.odds.v1.market_pb2 import Market
from ws_edge.model.authorization import Consumer, OwnerRule
from ws_edge.model.private_fields import PrivateField
from ws_edge.model.questions import Question
from ws_edge.model.states import Position
from ws_edge.model.stores import Store
from ws_edge.watches import token as token_module
from ws_edge.watches.token import Mask, Resumption, mask_of, resumption_of, token_of

ALICE, BOB = Consumer("alice", "a", staff=False), Consumer("bob", "b", staff=False)
OPEN = Store("odds", Market, True, OwnerRule(None, everyone=True))
OWNED = Store("bets", Market, True, OwnerRule("match_id"))
ASKED = Question(OPEN, "m1", limit=20)
MASKS = st.integers(0, 2**64 - 1).map(lambda number: Mask(number, number ^ 2**63))
EPOCHS = st.integers(0, 2**63 - 1)


@given(MASKS, EPOCHS, st.integers(-1, 2**62), st.integers(0, 2**40))
def test_a_token_brings_back_its_position(mask: Mask, epoch: int, offset: int, ahead: int) -> None:
    position = Position(epoch, offset)

    assert resumption_of(mask, token_of(mask, position, ahead)) == Resumption(position, ahead)


@given(MASKS, MASKS, EPOCHS)
def test_with_another_question_it_brings_another_epoch(mask: Mask, other: Mask, epoch: int) -> None:
    read = resumption_of(other, token_of(mask, Position(epoch, 5)))

    assert {*mask} == {*other} or read is None or read.position.epoch != epoch


@given(MASKS, st.text(max_size=60))
def test_whatever_a_client_sends_is_read_or_ignored(mask: Mask, text: str) -> None:
    read = resumption_of(mask, text)

    assert read is None or token_of(mask, *read)


def test_staff_see_the_same_and_have_the_same_tokens() -> None:
    question = replace(ASKED, store=OWNED)
    one, other = Consumer("alice", "a", staff=True), Consumer("bob", "b", staff=True)

    assert mask_of(question, (), one) == mask_of(question, (), other) != mask_of(question, (), ALICE)


def test_tokens_of_today_have_15_characters() -> None:
    assert len(token_of(mask_of(ASKED, (), ALICE), Position(1_764_000_000_000, 1_234_567))) == 15
    assert len(token_of(Mask(0, 0), Position(1, 2**42))) <= 20


@pytest.mark.parametrize(
    ("question", "fields"),
    [
        (replace(ASKED, group="m2"), ()),
        (replace(ASKED, limit=50), ()),
        (replace(ASKED, reverse=True), ()),
        (replace(ASKED, sort_from="a"), ()),
        (ASKED, ("name",)),
        (replace(ASKED, store=replace(OPEN, private=(PrivateField(("name",), "market_id"),))), ()),
        (replace(ASKED, store=replace(OPEN, rule=OwnerRule(None))), ()),
    ],
)
def test_whatever_changes_the_rows_changes_the_mask(question: Question, fields: tuple[str, ...]) -> None:
    assert mask_of(question, fields, ALICE) != mask_of(ASKED, (), ALICE)


def test_rows_that_are_for_everyone_have_one_token_for_everyone() -> None:
    assert mask_of(ASKED, (), ALICE) == mask_of(ASKED, (), BOB)
    assert mask_of(replace(ASKED, store=OWNED), (), ALICE) != mask_of(replace(ASKED, store=OWNED), (), BOB)


@pytest.mark.parametrize(
    ("question", "fields", "token", "ahead"),
    [
        (ASKED, (), "rfac_CGK33aIrUs", 0),
        (replace(ASKED, store=OWNED), ("match_id",), "r67_tNwY1sSIrUsC", 2),
        (ASKED, (), "Jmb9OO-JMDaIrUs", 0),
        (replace(ASKED, store=OWNED), ("match_id",), "JD6ecBIbOYSIrUsC", 2),
    ],
    ids=["last", "last, ahead", "next", "next, ahead"],
)
def test_a_token_of_the_last_and_of_the_next_release_goes_on(
    question: Question, fields: tuple[str, ...], token: str, ahead: int
) -> None:
    """If this fails, every client gets all rows again at the upgrade (docs/compatibility.md)."""
    position = Position(1_764_000_000_000, 1_234_567)

    assert resumption_of(mask_of(question, fields, ALICE), token) == Resumption(position, ahead)


def test_a_token_that_names_another_message_begins_with_all_rows() -> None:
    read = resumption_of(mask_of(replace(ASKED, store=replace(OPEN, message=Value)), (), ALICE), "Jmb9OO-JMDaIrUs")

    assert read is None or read.position.epoch != 1_764_000_000_000


def test_a_token_of_a_newer_version_begins_with_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    mask, epoch = mask_of(ASKED, (), ALICE), 1_764_000_000_000
    monkeypatch.setattr(token_module, "VERSION", "2")
    read = resumption_of(mask, token_of(mask_of(ASKED, (), ALICE), Position(epoch, 5)))

    assert read is None or read.position.epoch != epoch
