"""The railway: bookings, which are changed, handed over and cancelled."""

from typing import NamedTuple

from cdc_simulator.domain import MINUTE_US, Domain, StepContext
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, another, another_number, delete, number_at_end
from cdc_simulator.source_table import SourceTable
from statecast.bookings.v1.booking_pb2 import BookingChange

CITIES = (
    *("Berlin", "Dresden", "Frankfurt(Main)", "Hamburg", "Hannover", "Köln", "Leipzig", "München", "Nürnberg"),
    *("Stuttgart", "Wien"),
)
STATIONS = ("Basel SBB", *(f"{city} Hbf" for city in CITIES))
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
        return f"booking-{self.number:06d}"


BOOKINGS = SourceTable(
    "bookings",
    BookingRow,
    BookingChange,
    virtual={"booking_id": "printf('booking-%06d', number)"},
    key="customer_id",
    checks=("destination <> origin",),
)


def create_booking(number: int, context: StepContext) -> BookingRow:
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
    present = number_at_end(row.customer_id)
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

DOMAIN = Domain("bookings", (BOOKINGS,), BOOKING_LIFE_CYCLE.initial_rows, BOOKING_LIFE_CYCLE.next_mutation)
