"""A phone that stops reading, and neighbours who read on, some of them at the same edge."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from drivers.audience import ORDERS_PER_SOCKET, Audience
from drivers.edge_metrics import EdgeMetrics, edge_of_the_next, edges_of, opened_at
from drivers.large_orders import LargeOrders, order_of, skipped_in
from drivers.mobile import Frame, Phone, Watch, watch_request
from drivers.participants import as_gateway
from drivers.waiting import eventually
from local_stack.running_stack import RunningStack

AT_ONCE = 0
SKIPPED = "ws_edge_skipped_total"


@dataclass(frozen=True)
class Neighbour:
    """Somebody who reads all the time, and the edge behind their one socket."""

    edge: EdgeMetrics
    audience: Audience

    def told(self, order_id: str) -> Sequence[Frame]:
        """The frames of an order so far."""
        return self.audience.frames.get(order_id, ())

    def all_told(self) -> list[Frame]:
        """The frames of all orders so far."""
        return [frame for frames in self.audience.frames.values() for frame in frames]

    def assert_shown(self, orders: LargeOrders) -> None:
        """Raises AssertionError while they lack the newest row of an order that they watch, or have lost the socket."""
        assert all(self.told(order_id) for order_id in self.audience.order_ids)
        assert orders.are_shown(self.told(order_id)[-1] for order_id in self.audience.order_ids)
        assert self.audience.connects == 1


@dataclass(frozen=True)
class Sleeper:
    """The phone's socket, the edge behind it, and the neighbours."""

    watch: Watch
    edge: EdgeMetrics
    neighbours: Sequence[Neighbour]

    @property
    def beside(self) -> list[Neighbour]:
        """The neighbours at the same edge."""
        return [neighbour for neighbour in self.neighbours if neighbour.edge == self.edge]

    def told(self, order_id: str) -> list[Frame]:
        """The frames of an order that have been read."""
        return [frame for frame in self.watch.frames if order_of(frame) == order_id]

    def all_told(self) -> list[Frame]:
        """The frames of all orders that have been read."""
        return [frame for frame in self.watch.frames if order_of(frame)]

    def skipped(self) -> int:
        """The versions that its edge has skipped so far, without those that the neighbours there were told of."""
        told = sum(skipped_in(frame) for neighbour in self.beside for frame in neighbour.all_told())
        return int(self.edge.value(SKIPPED)) - told

    def assert_neighbours_shown(self, orders: LargeOrders) -> None:
        """Raises AssertionError while a neighbour lacks the newest row of an order."""
        for neighbour in self.neighbours:
            neighbour.assert_shown(orders)


@contextmanager
def sleeping_among_neighbours(stack: RunningStack, phone: Phone, orders: LargeOrders) -> Iterator[Sleeper]:
    """All of them watch the orders at interval 0 and have been shown them as they are; the sleeper reads no more."""
    edges = edges_of(stack)
    with ExitStack() as opened:
        before = opened_at(edges)
        watch = opened.enter_context(phone.open_unread())
        edge, neighbours = edge_of_the_next(before), list[Neighbour]()
        watch_all(watch, orders)
        read_until_shown(watch, orders)
        # The gateway takes a new socket to the edge that has the fewest: one of the next comes to this one.
        while all(neighbour.edge != edge for neighbour in neighbours):
            before = opened_at(edges)
            audience = Audience(as_gateway(stack), phone, orders.ids[:ORDERS_PER_SOCKET], AT_ONCE)
            opened.enter_context(audience)
            neighbour = Neighbour(edge_of_the_next(before), audience)
            eventually(lambda: neighbour.assert_shown(orders))  # noqa: B023  it is called at once
            neighbours.append(neighbour)
        yield Sleeper(watch, edge, neighbours)


def watch_all(watch: Watch, orders: LargeOrders, seen: Sequence[Frame] = ()) -> None:
    """Asks for all orders at interval 0, each after the last of the frames `seen` that tells it."""
    positions = {order_of(frame): frame["position"] for frame in seen if order_of(frame)}
    for order_id in orders.ids:
        watch.send(watch_request(order_id, AT_ONCE, positions.get(order_id)))


def read_until_shown(watch: Watch, orders: LargeOrders, seen: Sequence[Frame] = ()) -> None:
    """Reads on until the newest row of each order has been told, on this socket or by the frames `seen`."""
    last = {order_of(frame): frame for frame in (*seen, *watch.frames) if order_of(frame)}
    while not (len(last) == len(orders.ids) and orders.are_shown(last.values())):
        frame = watch.next()
        if order_of(frame):
            last[order_of(frame)] = frame
