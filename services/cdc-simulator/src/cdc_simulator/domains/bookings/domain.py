"""The domain `bookings`: one table of bookings."""

from cdc_simulator.domains.bookings.life_cycle import BOOKING_LIFE
from cdc_simulator.domains.bookings.table import BOOKINGS
from cdc_simulator.single_table import single_table_domain

DOMAIN = single_table_domain("bookings", BOOKINGS, BOOKING_LIFE)
