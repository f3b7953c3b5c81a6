"""The demo on a terminal."""

from datetime import UTC, datetime

from rich.console import Console

from local_stack.demo_board import Board, OrderUpdate, ShardLine
from local_stack.demo_view import draw, milliseconds

NOW = 1_800_000_000.0


def drawn(board: Board) -> str:
    console = Console(width=140)
    with console.capture() as capture:
        console.print(draw(board, "wss://gateway", 12, NOW, 40))
    return capture.get()


def test_it_shows_orders_ages_and_owners() -> None:
    board = Board(shards=(ShardLine("orders-by-key", 0, ("query-2", "query-1"), (True, True), 7),))
    committed = datetime.fromtimestamp(NOW - 0.042, UTC)
    board.apply(OrderUpdate("order-1", "Shipped", "2027-01-20", "TRACK-1", committed), "customer-1", "alice", NOW)

    text = drawn(board)

    for shown in (
        "order-1",
        "customer-1",
        "Shipped",
        "2027-01-20",
        "TRACK-1",
        "alice",
        "42 ms",
        "query-2, query-1  +7",
    ):
        assert shown in text
    assert "12 s left" in text


def test_it_shows_a_problem_instead_of_the_time_left() -> None:
    text = drawn(Board(problem="alice: connection refused"))

    assert "alice: connection refused" in text
    assert "s left" not in text


def test_an_unknown_age_is_a_dash() -> None:
    assert milliseconds(None) == "-"
    assert milliseconds(0.0421) == "42 ms"
