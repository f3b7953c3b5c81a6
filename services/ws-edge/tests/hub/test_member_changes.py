"""What has happened to a member, as one who may see the row is told it, and as one who may not."""

from ws_edge.authorization import Consumer
from ws_edge.hub.member_changes import MemberChange, Move, entered, gone, resumed
from ws_edge.states import Position, StoreKey, Version

ALICE = Consumer("alice", "alice", False)
STAFF = Consumer("", "operator", True)
KEY = StoreKey("s", "g", "1", "m")


def row(offset: int, owner: str = "alice") -> Version:
    return Version(KEY, Position(1, offset), row=object(), owner=owner)


def shape(change: MemberChange | None) -> tuple[bool, bool] | None:
    """Whether the member was there before, and is there after."""
    return None if change is None else (change.before is not None, change.after is not None)


def move(was: Version | None, now: Version | None) -> Move:
    return Move(was, now, Position(1, 9), None)


def test_a_row_enters_changes_and_leaves_for_who_may_see_it() -> None:
    mine, his = row(1), row(2, "bob")

    assert shape(move(None, mine).seen_by(ALICE)) == (False, True)
    assert shape(move(mine, row(2)).seen_by(ALICE)) == (True, True)
    assert shape(move(mine, None).seen_by(ALICE)) == (True, False)
    assert shape(move(mine, his).seen_by(ALICE)) == (True, False)
    assert shape(move(his, mine).seen_by(ALICE)) == (False, True)
    assert shape(move(mine, his).seen_by(STAFF)) == (True, True)


def test_nothing_of_a_row_that_was_always_somebody_elses_is_told() -> None:
    his = row(1, "bob")

    assert move(None, his).seen_by(ALICE) is None
    assert move(his, row(2, "bob")).seen_by(ALICE) is None
    assert move(his, None).seen_by(ALICE) is None


def test_all_who_are_told_the_same_share_one_change() -> None:
    moved = move(row(1), None)

    assert moved.seen_by(ALICE) is moved.seen_by(STAFF)


def test_a_row_that_went_and_came_back_unchanged_is_not_told() -> None:
    left = move(row(1), None).seen_by(ALICE)
    back = move(None, row(1)).seen_by(ALICE)

    assert left is not None
    assert back is not None
    assert left.followed_by(back, 0) is None


def test_two_changes_in_a_row_are_one_from_the_first_to_the_last() -> None:
    change = entered(row(1)).followed_by(resumed(row(2)), 1)

    assert shape(change) == (False, True)
    assert change is not None
    assert (change.position.offset, change.skipped, change.snapshot) == (2, 1, False)
    assert change.followed_by(gone(KEY, Position(1, 3), None), 1) is None
    assert shape(gone(KEY, Position(1, 3), None).followed_by(entered(row(4)), 0)) == (True, True)
