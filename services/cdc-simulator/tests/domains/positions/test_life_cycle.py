"""The life of an open position."""

from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domains.positions.life_cycle import LARGEST_AMOUNT, TICKERS, go_on, open_position
from cdc_simulator.domains.positions.row import PositionRow


def steps(basis: Basis) -> list[tuple[PositionRow, PositionRow | None]]:
    moments = [Moment(Random(seed), basis, 0) for seed in range(300)]
    return [(row, go_on(row, moment)) for moment in moments for row in [open_position(42, moment)]]


def test_its_share_is_traded_on_its_exchange(basis: Basis) -> None:
    for before, after in steps(basis):
        for row in (before, after or before):
            assert row.ticker in TICKERS[row.exchange]
            assert 1 <= row.amount <= LARGEST_AMOUNT


def test_it_is_traded_corrected_transferred_or_closed(basis: Basis) -> None:
    changed = {None if after is None else changed_fields(before, after) for before, after in steps(basis)}

    assert changed == {None, ("amount",), ("ticker",), ("ticker", "exchange"), ("client",)}


def changed_fields(before: PositionRow, after: PositionRow) -> tuple[str, ...]:
    return tuple(field for field in before._fields if getattr(before, field) != getattr(after, field))


def test_it_moves_between_the_exchanges_in_both_directions(basis: Basis) -> None:
    moves = {(before.exchange, after.exchange) for before, after in steps(basis) if after is not None}

    assert {("NASDAQ", "LON"), ("LON", "NASDAQ")} < moves
