"""A client that stops reading orders with large rows, and active readers, some of them at the same edge."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from drivers.edge_metrics import EdgeMetrics, edge_of_the_next, edges_of, opened_at
from drivers.gateway_client import Frame, GatewayClient, OrderSocket, gateway_of, watch_request
from drivers.order_source import OrderSource
from drivers.order_watchers import ORDERS_PER_SOCKET, OrderWatchers
from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually

CUSTOMER = "customer-of-large-orders"
STATIONS = (OrderStatus.ORDER_STATUS_PAID, OrderStatus.ORDER_STATUS_PACKED)
MAX_ROUNDS = 500
AT_ONCE = 0
SKIPPED = "ws_edge_skipped_total"


class LargeOrders:
    """Orders that are changed in rounds; `round` is the number of the last one, 0 when they have just been placed."""

    def __init__(self, source: OrderSource, count: int, row_bytes: int) -> None:
        """Places them, in round 0. They have no lines, so only stores of whole orders hold them."""
        self.round = 0
        self.row_bytes = row_bytes
        self._source = source
        self.ids = [source.place(CUSTOMER, {}).order_id for _ in range(count)]

    def change(self) -> None:
        """Changes each of them once."""
        self.round += 1
        for order_id in self.ids:
            tracking = f"{self.round}-{'x' * self.row_bytes}"
            self._source.advance(order_id, STATIONS[self.round % 2], tracking)

    def change_until(self, reached: Callable[[], bool]) -> None:
        """Changes them, round by round, until the condition holds after one."""
        for _ in range(MAX_ROUNDS):
            self.change()
            if reached():
                return
        raise AssertionError(f"{MAX_ROUNDS} rounds of changes did not do")

    def are_shown(self, frames: Iterable[Frame]) -> bool:
        """Returns whether the last frame of each order that the frames are about has its newest row."""
        rounds = {order_of(frame): round_of(frame) for frame in frames}
        return bool(rounds) and set(rounds.values()) == {self.round}


def order_of(frame: Frame) -> str:
    """Returns the order that a frame is about; empty when it is about none."""
    order_id: str = frame.get("data", {}).get("order_id", "")
    return order_id


def round_of(frame: Frame) -> int:
    """Returns the round of the change in a frame; -1 when the order is not known yet."""
    if frame["data"]["status"] == "Unknown":
        return -1
    return int(frame["data"]["tracking_number"].partition("-")[0] or 0)


def versions_in(frames: Iterable[Frame]) -> int:
    """Counts the versions that the frames stand for: those that they contain, and those that they report as skipped."""
    return sum(1 + skipped_in(frame) for frame in frames)


def skipped_in(frame: Frame) -> int:
    """Returns the versions that a frame reports as skipped before it."""
    return int(frame.get("skipped", 0))


@dataclass(frozen=True)
class ActiveReader:
    """A client that reads all the time, and the edge behind its only socket."""

    edge: EdgeMetrics
    watchers: OrderWatchers

    def frames_of(self, order_id: str) -> Sequence[Frame]:
        """Returns the frames of an order so far."""
        return self.watchers.frames.get(order_id, ())

    def all_frames(self) -> list[Frame]:
        """Returns the frames of all orders so far."""
        return [frame for frames in self.watchers.frames.values() for frame in frames]

    def assert_shown(self, orders: LargeOrders) -> None:
        """Raises AssertionError while they lack the newest row of an order that they watch, or have lost the socket."""
        assert all(self.frames_of(order_id) for order_id in self.watchers.order_ids)
        assert orders.are_shown(self.frames_of(order_id)[-1] for order_id in self.watchers.order_ids)
        assert self.watchers.connects == 1


@dataclass(frozen=True)
class StalledReader:
    """The phone's socket, the edge behind it, and the active readers."""

    watch: OrderSocket
    edge: EdgeMetrics
    active_readers: Sequence[ActiveReader]

    @property
    def beside(self) -> list[ActiveReader]:
        """The active readers at the same edge."""
        return [active_reader for active_reader in self.active_readers if active_reader.edge == self.edge]

    def frames_of(self, order_id: str) -> list[Frame]:
        """Returns the frames of an order that have been read."""
        return [frame for frame in self.watch.frames if order_of(frame) == order_id]

    def all_frames(self) -> list[Frame]:
        """Returns the frames of all orders that have been read."""
        return [frame for frame in self.watch.frames if order_of(frame)]

    def skipped(self) -> int:
        """Returns the versions that its edge has skipped so far, without those reported to the active readers there."""
        reported = sum(skipped_in(frame) for active_reader in self.beside for frame in active_reader.all_frames())
        return int(self.edge.metric(SKIPPED)) - reported

    def assert_active_readers_shown(self, orders: LargeOrders) -> None:
        """Raises AssertionError while an active reader lacks the newest row of an order."""
        for active_reader in self.active_readers:
            active_reader.assert_shown(orders)


@contextmanager
def stalled_among_active_readers(
    stack: RunningStack, phone: GatewayClient, orders: LargeOrders
) -> Iterator[StalledReader]:
    """Yields a stalled reader among active ones: all watch at interval 0 and have the newest rows."""
    edges = edges_of(stack)
    with ExitStack() as opened:
        before = opened_at(edges)
        watch = opened.enter_context(phone.open_unread())
        edge, active_readers = edge_of_the_next(before), list[ActiveReader]()
        watch_all(watch, orders)
        read_until_shown(watch, orders)
        # The gateway takes a new socket to the edge that has the fewest: one of the next comes to this one.
        while all(active_reader.edge != edge for active_reader in active_readers):
            before = opened_at(edges)
            watchers = OrderWatchers(gateway_of(stack), phone, orders.ids[:ORDERS_PER_SOCKET], AT_ONCE)
            opened.enter_context(watchers)
            active_reader = ActiveReader(edge_of_the_next(before), watchers)
            eventually(lambda: active_reader.assert_shown(orders))  # noqa: B023  it is called at once
            active_readers.append(active_reader)
        yield StalledReader(watch, edge, active_readers)


def watch_all(watch: OrderSocket, orders: LargeOrders, earlier_frames: Sequence[Frame] = ()) -> None:
    """Asks for all orders at interval 0, each after the last of the `earlier_frames` about it."""
    tokens = {order_of(frame): frame["token"] for frame in earlier_frames if order_of(frame)}
    for order_id in orders.ids:
        watch.send(watch_request(order_id, AT_ONCE, tokens.get(order_id, "")))


def read_until_shown(watch: OrderSocket, orders: LargeOrders, earlier_frames: Sequence[Frame] = ()) -> None:
    """Reads on until the newest row of each order has been told, on this socket or by the `earlier_frames`."""
    last = {order_of(frame): frame for frame in (*earlier_frames, *watch.frames) if order_of(frame)}
    while not (len(last) == len(orders.ids) and orders.are_shown(last.values())):
        frame = watch.next()
        if order_of(frame):
            last[order_of(frame)] = frame
