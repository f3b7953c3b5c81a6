"""A row of the table `bookings`."""

from typing import NamedTuple


class BookingRow(NamedTuple):
    """One row. Times are microseconds since 1970 UTC; `number` is the primary key."""

    number: int
    customer_id: str
    booked_at_us: int
    origin: str
    destination: str
    departs_at_us: int

    @property
    def booking_id(self) -> str:
        """The booking's id as the rest of the world knows it, for example `booking-000042`."""
        return f"booking-{self.number:06d}"
