"""A customer sees only their own rows."""

from ws_edge.model.authorization import EVERYONE, Consumer, OwnerRule, may_see
from ws_edge.model.states import KeyState, Position, StoreKey

ALICE = Consumer("customer-0001", "alice", False)
STAFF = Consumer("", "operator", True)


def row_of(owner: str) -> KeyState:
    return KeyState(StoreKey("orders-by-key", "o"), Position(1, 1), row=object(), owner=owner)


def test_a_row_is_seen_by_its_owner_and_by_staff() -> None:
    assert may_see(ALICE, row_of("customer-0001"))
    assert may_see(STAFF, row_of("customer-0001"))
    assert not may_see(ALICE, row_of("customer-0002"))
    assert not may_see(ALICE, row_of(""))


def test_a_row_without_an_owner_is_seen_by_staff_alone() -> None:
    assert not may_see(Consumer("", "nobody", False), row_of(""))
    assert may_see(STAFF, row_of(""))


def test_no_content_of_a_row_makes_it_one_for_everyone() -> None:
    assert not may_see(ALICE, row_of(OwnerRule("customer_id").owner_of(EVERYONE)))


def test_that_there_is_no_row_may_be_seen_by_all() -> None:
    assert may_see(ALICE, KeyState(StoreKey("orders-by-key", "o"), Position(1, 1)))


def test_the_rows_of_a_store_for_everyone_are_seen_by_all() -> None:
    rule = OwnerRule(None, everyone=True)

    assert may_see(ALICE, row_of(rule.owner_of("")))
    assert may_see(Consumer("", "nobody", False), row_of(rule.owner_of("")))


def test_who_passes_by_the_group_or_is_staff_may_see_whatever_the_group_has_had() -> None:
    assert OwnerRule("customer_id", group=True).shows_all(ALICE)
    assert OwnerRule(None, everyone=True).shows_all(ALICE)
    assert not OwnerRule("customer_id").shows_all(ALICE)
    assert OwnerRule("customer_id").shows_all(STAFF)
