"""The domain `orders`."""

from collections.abc import Iterator

from cdc_simulator.basis import Basis
from cdc_simulator.domains.orders.domain import DOMAIN
from cdc_simulator.domains.orders.row import OrderRow, Status

NOW_US = 1_724_848_496_123_456


def initial_rows(basis: Basis, now_us: int) -> Iterator[OrderRow]:
    return (insert.after for insert in DOMAIN.initial_rows(basis, now_us))


def test_there_are_as_many_as_asked_numbered_from_one(basis: Basis) -> None:
    rows = list(initial_rows(basis, NOW_US))

    assert [row.number for row in rows] == list(range(1, 51))
    assert rows[0].order_id == "order-000001"


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(basis: Basis) -> None:
    rows = list(initial_rows(basis, NOW_US))

    assert list(initial_rows(basis, NOW_US)) == rows
    assert list(initial_rows(basis._replace(seed=8), NOW_US)) != rows


def test_they_lie_in_the_past_and_were_changed_after_they_were_placed(basis: Basis) -> None:
    for row in initial_rows(basis, NOW_US):
        assert row.placed_at_us <= row.updated_at_us < NOW_US


def test_they_stand_at_all_stations_of_life(basis: Basis) -> None:
    assert {row.status for row in initial_rows(basis._replace(rows=300), NOW_US)} == set(Status)
