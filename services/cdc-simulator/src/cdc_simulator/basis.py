"""What a database is made from, and what a step of its rows may depend on."""

from random import Random
from typing import NamedTuple


class Basis(NamedTuple):
    """What a database is made from and keeps for life; each domain says what its customers and items are."""

    seed: int
    rows: int
    customers: int
    items: int


class Moment(NamedTuple):
    """What a step may depend on beside the row: chance, the basis, and the time in microseconds since 1970 UTC."""

    random: Random
    basis: Basis
    now_us: int
