"""Bookings as the contract has them."""

from cdc_simulator.domains.bookings.row import BookingRow
from cdc_simulator.domains.bookings.table import BOOKINGS, booking

ROW = BookingRow(42, "customer-0003", 1_000_001, "Köln Hbf", "Wien Hbf", 2_000_002)


def test_every_field_of_the_row_is_carried_over() -> None:
    message = booking(ROW)

    assert (message.booking_id, message.customer_id) == ("booking-000042", "customer-0003")
    assert (message.origin, message.destination) == ("Köln Hbf", "Wien Hbf")
    assert message.booked_at.ToMicroseconds() == 1_000_001
    assert message.departs_at.ToMicroseconds() == 2_000_002


def test_the_key_of_its_changes_is_the_customer() -> None:
    assert (BOOKINGS.key(ROW), BOOKINGS.row_id(ROW)) == ("customer-0003", "booking-000042")
