"""The demo without a terminal."""

from datetime import UTC, datetime

from rich.console import Console

from local_stack.demo_board import Board, OrderUpdate
from local_stack.demo_lines import batch_line, print_lines

NOW = 1_800_000_000.0


def apply(board: Board, order_id: str, now: float) -> None:
    committed = datetime.fromtimestamp(now - 0.05, UTC)
    board.apply(OrderUpdate(order_id, "Paid", "", "", committed), "customer-1", "alice", now)


class Clock:
    """Time passes only by sleeping; from `first` on, each second brings an update."""

    def __init__(self, board: Board, first: float | None = None) -> None:
        self.now = NOW
        self.board = board
        self.first = first

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.first is not None and self.now >= self.first:
            apply(self.board, "order-1", self.now - 0.1)


def test_a_line_names_some_orders_and_counts_the_others() -> None:
    board = Board()
    for number in range(5):
        apply(board, f"order-{number}", NOW + number)

    line = batch_line(board, NOW - 1, NOW + 5)

    assert "5 orders changed" in line
    assert "order-2 Paid, order-3 Paid, order-4 Paid and 2 more" in line


async def test_it_fails_when_no_update_came() -> None:
    board, console = Board(problem="alice: refused"), Console()
    clock = Clock(board)
    with console.capture() as capture:
        seen = await print_lines(board, 30, console, clock, clock.sleep)

    assert not seen
    assert "no update came within 30 s. alice: refused" in capture.get()


async def test_it_shows_updates_for_its_time_from_the_first_on() -> None:
    board, console = Board(), Console(width=200)
    clock = Clock(board, first=NOW + 20)
    with console.capture() as capture:
        seen = await print_lines(board, 30, console, clock, clock.sleep)

    assert seen
    assert clock.now == NOW + 50
    assert "31 updates; commit to client: median 50 ms" in capture.get()
