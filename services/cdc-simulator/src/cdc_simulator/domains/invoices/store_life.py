"""The life of a store: it is renamed now and then; pure."""

from random import Random

from cdc_simulator.chance import another
from cdc_simulator.domains.invoices.rows import StoreRow

STORES = 8
CITIES = ("Bengaluru", "Chennai", "Delhi", "Hyderabad", "Kolkata", "Mumbai", "Mysuru", "Pune")
NAMES = ("Bazaar", "Corner", "Market", "Plaza", "Square", "Yard")


def first_store(number: int) -> StoreRow:
    """Returns one of the stores, numbered from 1 to STORES, as it is called at the beginning."""
    city = CITIES[number % len(CITIES)]
    return StoreRow(number, f"{city} {NAMES[number % len(NAMES)]}", city)


def rename(row: StoreRow, random: Random) -> StoreRow:
    """Returns the store under another name."""
    return row._replace(name=another([f"{row.city} {name}" for name in NAMES], row.name, random))
