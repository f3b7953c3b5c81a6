"""What the demo shows: the newest state of each order, how old updates were when they came, and who serves what."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from statistics import median

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Column, Table
from rich.text import Text

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from statecast.query.v1.query_pb2 import Replica, Shard

RATE_WINDOW_S = 5.0
MAX_AGES = 1000
FRESH_S = 1.0
OTHER_LINES = 12
HINT_LINES = 4  # of a hint, folded
NAMED_ORDERS = 3
STATUS_STYLES = dict(zip(OrderStatus.values(), ("", "white", "cyan", "blue", "yellow", "green", "red"), strict=False))


@dataclass(frozen=True)
class OrderLine:
    """One order. Times are unix seconds: of the commit at the source, and of the last change that reached us."""

    order: Order
    seen_by: str
    committed_s: float
    changes: int = 0
    age_s: float = 0.0
    changed_s: float = 0.0

    @property
    def status(self) -> str:
        return OrderStatus.Name(self.order.status).removeprefix("ORDER_STATUS_").capitalize()


@dataclass
class Board:
    """Gathers what all demo users see. Times are unix seconds, ages are seconds.

    Nobody watched before `since_s`: changes from then are shown and not counted.
    """

    since_s: float = 0.0
    lines: dict[str, OrderLine] = field(default_factory=dict)
    shards: Sequence[Shard] = ()  # by store and partition
    updates: int = 0
    problem: str = ""
    hint: str = ""  # what the viewer may do, with line ends; empty for nothing
    _ages: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_AGES))
    _times: deque[float] = field(default_factory=deque)

    def apply(self, line: OrderLine, now: float) -> None:
        """Takes an order as it came at `now`. The first time that an order is seen is no change."""
        before = self.lines.setdefault(line.order.order_id, line)
        if line.committed_s <= before.committed_s:
            return
        if line.committed_s < self.since_s:
            self.lines[line.order.order_id] = line
            return
        line = replace(line, changes=before.changes + 1, age_s=now - line.committed_s, changed_s=now)
        self.lines[line.order.order_id] = line
        self._ages.append(line.age_s)
        self._times.append(now)
        self.updates += 1

    def changed_after(self, moment: float) -> list[OrderLine]:
        """The orders that changed after `moment`, the oldest change first; those that never did changed at 0."""
        changed = (line for line in self.lines.values() if line.changed_s > moment)
        return sorted(changed, key=lambda line: (line.changed_s, line.order.order_id))

    def latest(self, count: int) -> list[OrderLine]:
        return self.changed_after(-1)[::-1][:count]

    def rate(self, now: float) -> float:
        while self._times and self._times[0] < now - RATE_WINDOW_S:
            self._times.popleft()
        return len(self._times) / RATE_WINDOW_S

    def ages(self) -> tuple[str, str]:
        """The median and the highest age of the last thousand updates, for people; dashes before the first."""
        return (milliseconds(median(self._ages)), milliseconds(max(self._ages))) if self._ages else ("-", "-")


def batch_line(changed: Sequence[OrderLine], now: float) -> str:
    """One line about orders that have changed, for a demo without a terminal."""
    named = ", ".join(f"{line.order.order_id} {line.status}" for line in changed[-NAMED_ORDERS:])
    more = f" and {len(changed) - NAMED_ORDERS} more" if len(changed) > NAMED_ORDERS else ""
    slowest = milliseconds(max(line.age_s for line in changed))
    at = datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S")
    return f"{at}  {len(changed):3} orders changed, slowest after {slowest}: {named}{more}"


def draw(board: Board, address: str, seconds_left: float, now: float, height: int) -> RenderableType:
    """The whole view, as high as the terminal has lines. `now` is in unix seconds."""
    hints = [Text(board.hint, style="dim", overflow="fold")] if board.hint else []
    rows = max(3, height - OTHER_LINES - len({shard.store for shard in board.shards}) - HINT_LINES * len(hints))
    return Group(
        _figures(board, address, now),
        _orders(board.latest(rows), now),
        _shards(board.shards),
        *hints,
        Text(board.problem or f"{seconds_left:.0f} s left; any key ends it", style="red" if board.problem else "dim"),
    )


def milliseconds(age_s: float) -> str:
    return f"{age_s * 1000:.0f} ms"


def _figures(board: Board, address: str, now: float) -> Panel:
    median_age, highest_age = board.ages()
    figures = {
        "commit to client, median": median_age,
        "the slowest": highest_age,
        "updates here": f"{board.rate(now):.1f} /s",
        "orders watched": f"{len(board.lines)}",
    }
    grid = Table.grid(*(Column(justify="center", ratio=1) for _ in figures), expand=True)
    grid.add_row(*(f"[bold green]{value}[/]  [dim]{text}[/]" for text, value in figures.items()))
    return Panel(grid, title="[bold]Statecast[/]", subtitle=f"[dim]{address}[/]", box=box.ROUNDED)


def _orders(lines: list[OrderLine], now: float) -> Table:
    texts = ("order", "customer", "status", "delivery", "tracking", "seen by")
    figures = (Column(text, justify="right", no_wrap=True) for text in ("changes", "age"))
    columns = (*(Column(text, no_wrap=True) for text in texts), *figures)
    table = Table(*columns, box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    for line in lines:
        order, status = line.order, Text(line.status, STATUS_STYLES.get(line.order.status, "magenta"))
        cells = (order.order_id, order.customer_id, status, order.estimated_delivery, order.tracking_number)
        changes = (str(line.changes), milliseconds(line.age_s)) if line.changes else ()
        table.add_row(*cells, line.seen_by, *changes, style="bold" if now - line.changed_s < FRESH_S else "")
    return table


def _shards(shards: Sequence[Shard]) -> Table:
    partitions = sorted({shard.partition for shard in shards})
    columns = (Column(f"shard {partition}: owner, replica", no_wrap=True) for partition in partitions)
    table = Table("store", *columns, box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    for store, of_store in groupby(shards, lambda shard: shard.store):
        table.add_row(store, *(_replicas(shard.replicas) for shard in of_store))
    return table


def _replicas(replicas: Sequence[Replica]) -> Text:
    cell = Text()
    for rank, replica in enumerate(replicas):
        serving = "bold green" if rank == 0 else "green"
        cell.append(", " if rank else "").append(replica.instance, serving if replica.serving else "red")
    lag = replicas[0].lag_records if replicas else 0
    return cell.append(f"  +{lag}" if lag > 0 else "")
