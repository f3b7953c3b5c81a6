"""The legal steps in the life of a booking: rebooked, handed over, cancelled; pure."""

from cdc_simulator.basis import Moment
from cdc_simulator.chance import Step, another, another_number, end, take_step
from cdc_simulator.domains.bookings.row import BookingRow
from cdc_simulator.life import Life
from cdc_simulator.timestamps import US

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
MINUTE_US = 60 * US
EARLIEST_DEPARTURE_MINUTES = 60
LATEST_DEPARTURE_MINUTES = 30 * 24 * 60
STEADY_CREATION_CHANCE = 0.17


def book(number: int, moment: Moment) -> BookingRow:
    """Returns a new booking of a random customer."""
    random, basis, now_us = moment
    origin, destination = random.sample(STATIONS, 2)
    customer = _customer_id(1 + random.randrange(basis.customers))
    return BookingRow(number, customer, now_us, origin, destination, _departure_us(moment))


def go_on(row: BookingRow, moment: Moment) -> BookingRow | None:
    """Returns the booking after one legal step, or absent when it is cancelled."""
    return take_step(row, STEPS, moment)


def _take_another_train(row: BookingRow, moment: Moment) -> BookingRow:
    departs_at_us = _departure_us(moment)
    return row._replace(departs_at_us=departs_at_us + MINUTE_US * (departs_at_us == row.departs_at_us))


def _go_elsewhere(row: BookingRow, moment: Moment) -> BookingRow:
    elsewhere = [station for station in STATIONS if station != row.origin]
    destination = another(elsewhere, row.destination, moment.random)
    return row._replace(destination=destination, departs_at_us=_departure_us(moment))


def _hand_over(row: BookingRow, moment: Moment) -> BookingRow:
    present = int(row.customer_id.rpartition("-")[2])
    return row._replace(customer_id=_customer_id(another_number(moment.basis.customers, present, moment.random)))


def _customer_id(number: int) -> str:
    return f"customer-{number:04d}"


def _departure_us(moment: Moment) -> int:
    minutes = moment.random.randrange(EARLIEST_DEPARTURE_MINUTES, LATEST_DEPARTURE_MINUTES)
    return (moment.now_us // MINUTE_US + minutes) * MINUTE_US


STEPS = (Step(45, _take_another_train), Step(25, _go_elsewhere), Step(10, _hand_over), Step(20, end))
BOOKING_LIFE = Life("bookings", book, go_on, STEADY_CREATION_CHANCE)
