"""Orders whose rows are large, so that a few changes fill what lies between an edge and a client that does not read."""

from collections.abc import Callable, Iterable

from drivers.mobile import Frame
from drivers.source import OrderSource
from statecast.orders.v1.order_pb2 import OrderStatus

CUSTOMER = "customer-of-large-orders"
STATIONS = (OrderStatus.ORDER_STATUS_PAID, OrderStatus.ORDER_STATUS_PACKED)
MOST_ROUNDS = 500


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
        for _ in range(MOST_ROUNDS):
            self.change()
            if reached():
                return
        raise AssertionError(f"{MOST_ROUNDS} rounds of changes did not do")

    def are_shown(self, frames: Iterable[Frame]) -> bool:
        """Whether the last frame of each order that the frames are about has its newest row."""
        rounds = {order_of(frame): round_of(frame) for frame in frames}
        return bool(rounds) and set(rounds.values()) == {self.round}


def order_of(frame: Frame) -> str:
    """The order that a frame is about; nothing when it tells no order."""
    order_id: str = frame.get("data", {}).get("order_id", "")
    return order_id


def round_of(frame: Frame) -> int:
    """The round of the change that a frame tells; -1 when the order is not known yet."""
    if frame["data"]["status"] == "Unknown":
        return -1
    return int(frame["data"]["tracking_number"].partition("-")[0] or 0)


def versions_in(frames: Iterable[Frame]) -> int:
    """How many versions the frames stand for: those that they tell, and those that they say were skipped."""
    return sum(1 + skipped_in(frame) for frame in frames)


def skipped_in(frame: Frame) -> int:
    """The versions that a frame says were skipped before it."""
    return int(frame.get("skipped", 0))
