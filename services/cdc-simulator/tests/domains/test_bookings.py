"""Bookings: their life cycle and their messages."""

from random import Random

from cdc_simulator.domain import DatabaseParameters, StepContext
from cdc_simulator.domains.bookings import BOOKING_LIFE_CYCLE, BOOKINGS, BookingRow, create_booking
from statecast.bookings.v1.booking_pb2 import Booking

NOW_US = 1_724_848_496_123_456
ROW = BookingRow(42, "customer-0003", 1_000_001, "Köln Hbf", "Wien Hbf", 2_000_002)


def steps(parameters: DatabaseParameters) -> list[tuple[BookingRow, BookingRow | None]]:
    contexts = [StepContext(Random(seed), parameters, NOW_US) for seed in range(300)]
    return [
        (row, BOOKING_LIFE_CYCLE.advance(row, context)) for context in contexts for row in [create_booking(42, context)]
    ]


def test_a_booking_leads_to_another_station_and_departs_after_it_was_made(parameters: DatabaseParameters) -> None:
    for before, after in steps(parameters):
        for row in (before, after or before):
            assert row.origin != row.destination
            assert row.departs_at_us > row.booked_at_us == NOW_US


def test_a_booking_is_changed_handed_over_or_cancelled(parameters: DatabaseParameters) -> None:
    changed = {None if after is None else changed_fields(before, after) for before, after in steps(parameters)}

    assert changed == {None, ("departs_at_us",), ("destination", "departs_at_us"), ("customer_id",)}


def changed_fields(before: BookingRow, after: BookingRow) -> tuple[str, ...]:
    return tuple(field for field in before._fields if getattr(before, field) != getattr(after, field))


def test_a_single_customer_keeps_a_booking(parameters: DatabaseParameters) -> None:
    rows = [row for pair in steps(parameters._replace(customers=1)) for row in pair if row is not None]

    assert {row.customer_id for row in rows} == {"customer-0001"}


def test_every_field_of_the_row_is_carried_over() -> None:
    message = BOOKINGS.message(ROW)

    assert isinstance(message, Booking)
    assert (message.booking_id, message.customer_id) == ("booking-000042", "customer-0003")
    assert (message.origin, message.destination) == ("Köln Hbf", "Wien Hbf")
    assert message.booked_at.ToMicroseconds() == 1_000_001
    assert message.departs_at.ToMicroseconds() == 2_000_002


def test_the_key_of_changes_of_a_booking_is_the_customer() -> None:
    assert (BOOKINGS.key(ROW), BOOKINGS.row_id(ROW)) == ("customer-0003", "booking-000042")
