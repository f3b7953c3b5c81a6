"""The life of a booking."""

from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domains.bookings.life_cycle import book, go_on
from cdc_simulator.domains.bookings.row import BookingRow

NOW_US = 1_724_848_496_123_456


def steps(basis: Basis) -> list[tuple[BookingRow, BookingRow | None]]:
    moments = [Moment(Random(seed), basis, NOW_US) for seed in range(300)]
    return [(row, go_on(row, moment)) for moment in moments for row in [book(42, moment)]]


def test_it_leads_to_another_station_and_departs_after_it_was_made(basis: Basis) -> None:
    for before, after in steps(basis):
        for row in (before, after or before):
            assert row.origin != row.destination
            assert row.departs_at_us > row.booked_at_us == NOW_US


def test_it_is_rebooked_handed_over_or_cancelled(basis: Basis) -> None:
    changed = {None if after is None else changed_fields(before, after) for before, after in steps(basis)}

    assert changed == {None, ("departs_at_us",), ("destination", "departs_at_us"), ("customer_id",)}


def changed_fields(before: BookingRow, after: BookingRow) -> tuple[str, ...]:
    return tuple(field for field in before._fields if getattr(before, field) != getattr(after, field))


def test_a_single_customer_keeps_it(basis: Basis) -> None:
    rows = [row for pair in steps(basis._replace(customers=1)) for row in pair if row is not None]

    assert {row.customer_id for row in rows} == {"customer-0001"}
