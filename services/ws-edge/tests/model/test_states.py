"""Which version of a key is news after another, and how a key reads as text."""

import pytest

from ws_edge.model.states import KeyState, Position, StoreKey, is_news

KEY = StoreKey("orders-by-key", "o")


def version(offset: int, row: object = "row", commit_ns: int | None = None) -> KeyState:
    return KeyState(KEY, Position(1, offset), row=row, commit_ns=commit_ns)


@pytest.mark.parametrize(
    ("latest", "later", "news"),
    [
        (version(1), version(2), True),
        (version(1, commit_ns=5), version(2, commit_ns=5), False),
        (version(1, commit_ns=5), version(2, commit_ns=6), True),
        (version(1, commit_ns=5), version(2, "newer", commit_ns=5), True),
        (version(2), version(2), False),
        (version(2), version(1), False),
    ],
)
def test_only_a_later_version_that_says_something_else_is_news(latest: KeyState, later: KeyState, news: bool) -> None:
    assert is_news(latest, later) is news


def test_a_key_reads_as_its_parts() -> None:
    assert str(KEY) == "orders-by-key/o"
    assert str(StoreKey("s", "g", "1", "m")) == "s/g/1/m"
