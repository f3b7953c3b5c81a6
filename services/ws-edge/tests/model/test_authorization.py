"""A customer sees only their own rows."""

import pytest

from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule, may_see
from ws_edge.model.states import KeyState, Position, StoreKey

ALICE = Consumer("customer-0001", "alice", False)
STAFF = Consumer("", "operator", True)
NOBODY = Consumer("", "nobody", False)


def row_of(owner: str) -> KeyState:
    return KeyState(StoreKey("orders-by-key", "o"), Position(1, 1), row=object(), owner=owner)


@pytest.mark.parametrize(
    ("owner", "seen_by"),
    [
        ("customer-0001", {"alice", "operator"}),
        ("customer-0002", {"operator"}),
        ("", {"operator"}),
        (OwnerRule("customer_id").owner_of(EVERYONE), {"operator"}),
        (OwnerRule(None, everyone=True).owner_of(""), {"alice", "nobody", "operator"}),
    ],
    ids=["own", "another's", "nobody's", "says-everyone", "everyone's"],
)
def test_a_row_is_seen_by_its_owner_and_by_staff_or_by_everyone(owner: str, seen_by: set[str]) -> None:
    assert {each.name for each in (ALICE, NOBODY, STAFF) if may_see(each, row_of(owner))} == seen_by


def test_that_there_is_no_row_may_be_seen_by_all() -> None:
    assert may_see(ALICE, KeyState(StoreKey("orders-by-key", "o"), Position(1, 1)))


def test_who_passes_by_the_group_or_is_staff_may_see_whatever_the_group_has_had() -> None:
    assert OwnerRule("customer_id", group=True).shows_all(ALICE)
    assert OwnerRule(None, everyone=True).shows_all(ALICE)
    assert not OwnerRule("customer_id").shows_all(ALICE)
    assert OwnerRule("customer_id").shows_all(STAFF)
