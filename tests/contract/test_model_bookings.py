"""The model of the bookings' pipeline, on a history made by hand."""

from drivers.model_bookings import bookings_by_customer
from drivers.model_history import History
from google.protobuf.timestamp_pb2 import Timestamp

from statecast.bookings.v1.booking_pb2 import Booking, BookingChange

BOOKED = Timestamp(seconds=1_724_848_496)


def test_a_booking_stands_where_it_was_handed_over_to_and_a_cancelled_one_nowhere() -> None:
    history = History(BookingChange, "bookings")
    history.snapshot(Booking(booking_id="b1", customer_id="c1", booked_at=BOOKED, destination="Wien Hbf"))
    history.create(Booking(booking_id="b2", customer_id="c1", booked_at=BOOKED))
    history.create(Booking(booking_id="b3", customer_id="c2", booked_at=BOOKED))
    history.update("b1", destination="Köln Hbf")
    history.update("b2", customer_id="c2")
    history.delete("b3")

    assert bookings_by_customer(history.changes) == {
        "c1\0" + "2024-08-28T12:34:56.000000Z\0b1": Booking(
            booking_id="b1", customer_id="c1", booked_at=BOOKED, destination="Köln Hbf"
        ),
        "c2\0" + "2024-08-28T12:34:56.000000Z\0b2": Booking(booking_id="b2", customer_id="c2", booked_at=BOOKED),
    }
