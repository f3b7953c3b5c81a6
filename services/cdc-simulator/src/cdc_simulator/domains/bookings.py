"""The railway: bookings, which are changed, handed over and cancelled."""

from typing import NamedTuple

from cdc_simulator.domain import MINUTE_US, SourceTable, StepContext, timestamp
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, another, another_number, delete, single_table_domain
from statecast.bookings.v1.booking_pb2 import Booking, BookingChange

STATIONS = (
    "Basel SBB",
    "Berlin Hbf",
    "Dresden Hbf",
    "Frankfurt(Main) Hbf",
    "Hamburg Hbf",
    "Hannover Hbf",
    "Köln Hbf",
    "Leipzig Hbf",
    "München Hbf",
    "Nürnberg Hbf",
    "Stuttgart Hbf",
    "Wien Hbf",
)
MIN_DEPARTURE_MINUTES = 60
MAX_DEPARTURE_MINUTES = 30 * 24 * 60


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
        """The booking's public id, for example `booking-000042`."""
        return f"booking-{self.number:06d}"


def booking_message(row: BookingRow) -> Booking:
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
    definition="""
CREATE TABLE bookings (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    booking_id TEXT GENERATED ALWAYS AS (printf('booking-%06d', number)) VIRTUAL,
    customer_id TEXT NOT NULL,
    booked_at_us INTEGER NOT NULL,
    origin TEXT NOT NULL,
    destination TEXT NOT NULL CHECK (destination <> origin),
    departs_at_us INTEGER NOT NULL
);
""",
    row=BookingRow,
    row_id=lambda row: row.booking_id,
    key=lambda row: row.customer_id,
    message=booking_message,
    change=BookingChange,
)


def create_booking(number: int, context: StepContext) -> BookingRow:
    """Returns a new booking of a random customer."""
    random, parameters, now_us = context
    origin, destination = random.sample(STATIONS, 2)
    customer = _customer_id(1 + random.randrange(parameters.customers))
    return BookingRow(number, customer, now_us, origin, destination, _departure_us(context))


def _change_train(row: BookingRow, context: StepContext) -> BookingRow:
    departs_at_us = _departure_us(context)
    return row._replace(departs_at_us=departs_at_us + MINUTE_US * (departs_at_us == row.departs_at_us))


def _change_destination(row: BookingRow, context: StepContext) -> BookingRow:
    stations = [station for station in STATIONS if station != row.origin]
    destination = another(stations, row.destination, context.random)
    return row._replace(destination=destination, departs_at_us=_departure_us(context))


def _hand_over(row: BookingRow, context: StepContext) -> BookingRow:
    present = int(row.customer_id.rpartition("-")[2])
    number = another_number(context.parameters.customers, present, context.random)
    return row._replace(customer_id=_customer_id(number))


def _customer_id(number: int) -> str:
    return f"customer-{number:04d}"


def _departure_us(context: StepContext) -> int:
    minutes = context.random.randrange(MIN_DEPARTURE_MINUTES, MAX_DEPARTURE_MINUTES)
    return (context.now_us // MINUTE_US + minutes) * MINUTE_US


BOOKING_LIFE_CYCLE = RowLifeCycle(
    "bookings",
    create_booking,
    (Step(45, _change_train), Step(25, _change_destination), Step(10, _hand_over), Step(20, delete)),
    creation_share=0.17,
)

DOMAIN = single_table_domain("bookings", BOOKINGS, BOOKING_LIFE_CYCLE)
