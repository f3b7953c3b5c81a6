"""When the garbage of closed sockets is collected, and that closed sockets are counted."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from ws_edge.sockets.leavings import LEAST, Leavings
from ws_edge.testing.edge import RunningEdge, until


class Sockets:
    """So many open and closed sockets."""

    def __init__(self, count: int, closed: int) -> None:
        self.count = count
        self.closed = closed

    def __len__(self) -> int:
        return self.count


class Cycle:
    """Garbage that only the collector frees."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def _no_other_collection() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def is_collected(leavings: Leavings) -> bool:
    garbage = weakref.ref(Cycle())
    leavings.collect()
    return garbage() is None


@pytest.mark.parametrize(
    ("count", "closed", "collected"),
    [(0, LEAST - 1, False), (0, LEAST, True), (5 * LEAST, 5 * LEAST - 1, False), (5 * LEAST, 5 * LEAST, True)],
)
def test_it_is_collected_when_as_many_have_closed_as_are_open(count: int, closed: int, collected: bool) -> None:
    assert is_collected(Leavings(Sockets(count, closed))) is collected


def test_what_was_collected_counts_no_more() -> None:
    sockets = Sockets(0, LEAST)
    leavings = Leavings(sockets)
    first, again = is_collected(leavings), is_collected(leavings)
    sockets.closed += LEAST
    later = is_collected(leavings)

    assert (first, again, later) == (True, False, True)


async def test_an_edge_counts_the_sockets_that_have_closed(edge: RunningEdge) -> None:
    for _ in range(2):
        async with edge.socket():
            pass
    await until(lambda: edge.parts.sockets.closed == 2)

    assert len(edge.parts.sockets) == 0
