"""The change of a member, for a consumer that may see the row and for one that may not."""

from ws_edge.hub.member_changes import HeldRow, MemberChange, Move, move
from ws_edge.model.authorization import Consumer
from ws_edge.model.states import KeyState, Position, StoreKey

ALICE = Consumer("alice", "alice", False)
STAFF = Consumer("", "operator", True)
KEY = StoreKey("s", "g", "1", "m")


def row(offset: int, owner: str = "alice") -> KeyState:
    return KeyState(KEY, Position(1, offset), row=object(), owner=owner)


def shape(change: MemberChange | None) -> tuple[bool, bool] | None:
    """Whether the member was there before, and is there after."""
    return None if change is None else (change.before is not None, change.state.row is not None)


def change(was: KeyState | None, now: KeyState | None) -> Move:
    return move(was, now or KeyState(KEY, Position(1, 9)), Position(1, 9))


def entered(state: KeyState) -> MemberChange:
    return MemberChange(None, state, snapshot=True)


def resumed(state: KeyState) -> MemberChange:
    return MemberChange(HeldRow(KEY, None), state, snapshot=True)


def gone(offset: int) -> MemberChange:
    return MemberChange(HeldRow(KEY, None), KeyState(KEY, Position(1, offset)), snapshot=True)


def test_a_row_enters_changes_and_leaves_for_consumers_that_may_see_it() -> None:
    mine, his = row(1), row(2, "bob")

    assert shape(change(None, mine).seen_by(ALICE)) == (False, True)
    assert shape(change(mine, row(2)).seen_by(ALICE)) == (True, True)
    assert shape(change(mine, None).seen_by(ALICE)) == (True, False)
    assert shape(change(mine, his).seen_by(ALICE)) == (True, False)
    assert shape(change(his, mine).seen_by(ALICE)) == (False, True)
    assert shape(change(mine, his).seen_by(STAFF)) == (True, True)


def test_a_row_that_was_always_somebody_elses_is_hidden() -> None:
    his = row(1, "bob")

    assert change(None, his).seen_by(ALICE) is None
    assert change(his, row(2, "bob")).seen_by(ALICE) is None
    assert change(his, None).seen_by(ALICE) is None


def test_subscribers_that_see_the_same_share_one_change() -> None:
    moved = change(row(1), None)

    assert moved.seen_by(ALICE) is moved.seen_by(STAFF)


def test_a_row_that_went_and_came_back_unchanged_is_no_change() -> None:
    left = change(row(1), None).seen_by(ALICE)
    back = change(None, row(1)).seen_by(ALICE)

    assert left is not None
    assert back is not None
    assert left.followed_by(back, 0) is None


def test_two_changes_in_a_row_are_one_from_the_first_to_the_last() -> None:
    merged = entered(row(1)).followed_by(resumed(row(2)), 1)

    assert shape(merged) == (False, True)
    assert merged is not None
    assert (merged.state.position.offset, merged.skipped, merged.snapshot) == (2, 1, False)
    assert merged.followed_by(gone(3), 1) is None
    assert shape(gone(3).followed_by(entered(row(4)), 0)) == (True, True)
