"""What the topic of the bookings' pipeline must hold, computed from the change log alone."""

from collections.abc import Iterable

from drivers.model_changes import rows_after
from drivers.model_keys import Keyed, member_key, time_sort
from statecast.bookings.v1.booking_pb2 import BookingChange


def bookings_by_customer(changes: Iterable[BookingChange]) -> Keyed:
    """The bookings of each customer, by the time of booking."""
    return {member_key(row.customer_id, time_sort(row.booked_at), row.booking_id): row for row in rows_after(changes)}
