"""The table `bookings`: its columns, and its rows as the contract has them."""

from cdc_simulator.domain import SourceTable
from cdc_simulator.domains.bookings.row import BookingRow
from cdc_simulator.timestamps import timestamp
from statecast.bookings.v1.booking_pb2 import Booking, BookingChange

DEFINITION = """
CREATE TABLE bookings (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    booking_id TEXT GENERATED ALWAYS AS (printf('booking-%06d', number)) VIRTUAL,
    customer_id TEXT NOT NULL,
    booked_at_us INTEGER NOT NULL,
    origin TEXT NOT NULL,
    destination TEXT NOT NULL CHECK (destination <> origin),
    departs_at_us INTEGER NOT NULL
);
"""


def booking(row: BookingRow) -> Booking:
    """Returns the row as the contract has it."""
    return Booking(
        booking_id=row.booking_id,
        customer_id=row.customer_id,
        booked_at=timestamp(row.booked_at_us),
        origin=row.origin,
        destination=row.destination,
        departs_at=timestamp(row.departs_at_us),
    )


BOOKINGS = SourceTable(
    name="bookings",
    topic="bookings",
    definition=DEFINITION,
    row=BookingRow,
    row_id=lambda row: row.booking_id,
    key=lambda row: row.customer_id,
    message=booking,
    change=BookingChange,
)
