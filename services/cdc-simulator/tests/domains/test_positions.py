"""Open positions: their life cycle and their messages."""

from random import Random

from cdc_simulator.domain import DatabaseParameters, StepContext
from cdc_simulator.domains.positions import (
    MAX_AMOUNT,
    OPEN_POSITIONS,
    POSITION_LIFE_CYCLE,
    TICKERS,
    PositionRow,
    create_position,
)
from statecast.portfolio.v1.open_position_pb2 import OpenPosition

ROW = PositionRow(42, "client7", "AAPL", 15, "NASDAQ")


def steps(parameters: DatabaseParameters) -> list[tuple[PositionRow, PositionRow | None]]:
    contexts = [StepContext(Random(seed), parameters, 0) for seed in range(300)]
    return [
        (row, POSITION_LIFE_CYCLE.advance(row, context))
        for context in contexts
        for row in [create_position(42, context)]
    ]


def test_a_position_holds_a_share_that_is_traded_on_its_exchange(parameters: DatabaseParameters) -> None:
    for before, after in steps(parameters):
        for row in (before, after or before):
            assert row.ticker in TICKERS[row.exchange]
            assert 1 <= row.amount <= MAX_AMOUNT


def test_a_position_is_traded_corrected_transferred_or_closed(parameters: DatabaseParameters) -> None:
    changed = {None if after is None else changed_fields(before, after) for before, after in steps(parameters)}

    assert changed == {None, ("amount",), ("ticker",), ("ticker", "exchange"), ("client",)}


def changed_fields(before: PositionRow, after: PositionRow) -> tuple[str, ...]:
    return tuple(field for field in before._fields if getattr(before, field) != getattr(after, field))


def test_positions_move_between_the_exchanges_in_both_directions(parameters: DatabaseParameters) -> None:
    moves = {(before.exchange, after.exchange) for before, after in steps(parameters) if after is not None}

    assert {("NASDAQ", "LON"), ("LON", "NASDAQ")} < moves


def test_every_field_of_the_row_is_carried_over() -> None:
    assert OPEN_POSITIONS.message(ROW) == OpenPosition(
        position_id="position-000042", client="client7", ticker="AAPL", amount=15, exchange="NASDAQ"
    )


def test_the_key_of_changes_of_a_position_is_the_position() -> None:
    assert OPEN_POSITIONS.key(ROW) == OPEN_POSITIONS.row_id(ROW) == "position-000042"
