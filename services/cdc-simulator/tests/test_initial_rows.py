"""The rows that a database begins with."""

from cdc_simulator.initial_rows import initial_rows
from cdc_simulator.order_row import Shop, Status

NOW_US = 1_724_848_496_123_456


def test_there_are_as_many_as_asked_numbered_from_one(shop: Shop) -> None:
    rows = list(initial_rows(shop, NOW_US))

    assert [row.number for row in rows] == list(range(1, 51))
    assert rows[0].order_id == "order-000001"


def test_the_same_seed_gives_the_same_rows_and_another_seed_others(shop: Shop) -> None:
    rows = list(initial_rows(shop, NOW_US))

    assert list(initial_rows(shop, NOW_US)) == rows
    assert list(initial_rows(shop._replace(seed=8), NOW_US)) != rows


def test_they_lie_in_the_past_and_were_changed_after_they_were_placed(shop: Shop) -> None:
    for row in initial_rows(shop, NOW_US):
        assert row.placed_at_us <= row.updated_at_us < NOW_US


def test_they_stand_at_all_stations_of_life(shop: Shop) -> None:
    assert {row.status for row in initial_rows(shop._replace(orders=300), NOW_US)} == set(Status)
