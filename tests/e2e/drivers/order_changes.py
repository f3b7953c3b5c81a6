"""Changes of orders that a seed decides: many orders are placed once, a few change all the time."""

import random

from drivers.source import OrderSource
from statecast.orders.v1.order_pb2 import OrderStatus

CUSTOMERS = 12
BUSY_ORDERS = 200
PLACED_ONCE_SHARE = 0.5
DELETED_SHARE = 0.05
HANDED_OVER_SHARE = 0.1
STATUSES = [status for status in OrderStatus.values() if status != OrderStatus.ORDER_STATUS_UNSPECIFIED]


class OrderChanges:
    """Makes `count` changes one by one; one thread makes them, any may read how many there are.

    A busy order is advanced, handed over to another customer, deleted, and placed again.
    """

    def __init__(self, source: OrderSource, seed: int, count: int) -> None:
        """Makes none yet. Orders and customers bear the seed in their names."""
        self._source = source
        self._chance = random.Random(f"changes {seed}")
        self._living: set[str] = set()
        self.prefix = f"kills-{seed}-"
        """What the ids of all these orders begin with."""
        self.customers = [f"{self.prefix}customer-{number:02}" for number in range(CUSTOMERS)]
        self.busy = [f"{self.prefix}busy-{number:03}" for number in range(BUSY_ORDERS)]
        self.placed_once = [f"{self.prefix}once-{number:05}" for number in range(int(count * PLACED_ONCE_SHARE))]
        again = self._chance.choices(self.busy, k=count - len(self.busy) - len(self.placed_once))
        later = self.placed_once + again
        self._chance.shuffle(later)
        self._script = self.busy + later
        self.made = 0

    def __len__(self) -> int:
        return len(self._script)

    def make_next(self) -> None:
        """Makes the next change; it is acknowledged by Kafka on return."""
        order_id, chance = self._script[self.made], self._chance
        if order_id not in self._living:
            self._living.add(order_id)
            self._source.place(chance.choice(self.customers), {f"item-{chance.randrange(50)}": 1}, order_id)
        elif (dice := chance.random()) < DELETED_SHARE:
            self._living.discard(order_id)
            self._source.delete(order_id)
        elif dice < DELETED_SHARE + HANDED_OVER_SHARE:
            self._source.hand_over(order_id, chance.choice(self.customers))
        else:
            self._source.advance(order_id, chance.choice(STATUSES))
        self.made += 1
