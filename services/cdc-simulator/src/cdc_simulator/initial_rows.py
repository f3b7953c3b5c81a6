"""The rows that a new database begins with; pure. Each has lived a legal life before the beginning."""

from collections.abc import Iterator
from random import Random

from cdc_simulator.life_cycle import US, Moment, advance, is_finished, place
from cdc_simulator.order_row import OrderRow, Shop

OLDEST_S = 3 * 24 * 3600
MOST_STEPS = 7


def initial_rows(shop: Shop, now_us: int) -> Iterator[OrderRow]:
    """Yields rows 1 to `shop.orders`, placed within the three days before `now_us`; the same seed, the same lives."""
    for number in range(1, shop.orders + 1):
        yield _grown(number, Random(f"{shop.seed}:initial:{number}"), shop, now_us)  # noqa: S311  a game, no secret


def _grown(number: int, random: Random, shop: Shop, now_us: int) -> OrderRow:
    age_us = random.randrange(60 * US, OLDEST_S * US)
    steps = random.randrange(MOST_STEPS + 1)
    row = place(number, Moment(random, shop, now_us - age_us))
    for step in range(1, steps + 1):
        if not is_finished(row):
            row = advance(row, Moment(random, shop, now_us - age_us + age_us * step // (steps + 1)))
    return row
