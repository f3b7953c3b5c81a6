"""What the demo knows: the newest state of each order, how old updates were when they came, how many came."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import median
from typing import Any

RATE_WINDOW_S = 5.0
AGES_KEPT = 1000


@dataclass(frozen=True)
class OrderUpdate:
    """One frame about an order. `snapshot` is true for the first of a subscription, which tells of no change."""

    order_id: str
    status: str
    estimated_delivery: str
    tracking_number: str
    committed: datetime | None
    snapshot: bool = False


@dataclass(frozen=True)
class OrderLine:
    """One order on the board. `age_s` is None until it changed before our eyes; `changed_s` is when it came."""

    update: OrderUpdate
    customer_id: str
    seen_by: str
    changes: int = 0
    age_s: float | None = None
    changed_s: float = 0.0


@dataclass(frozen=True)
class ShardLine:
    """One partition of a store: the instances by rank, and the owner's lag in records."""

    store: str
    partition: int
    instances: tuple[str, ...]
    serving: tuple[bool, ...]
    lag_records: int


@dataclass
class Board:
    """Gathers the updates of all sockets. Times are unix seconds, ages are seconds."""

    lines: dict[str, OrderLine] = field(default_factory=dict)
    shards: tuple[ShardLine, ...] = ()
    updates: int = 0
    problem: str = ""
    _ages: deque[float] = field(default_factory=lambda: deque(maxlen=AGES_KEPT))
    _times: deque[float] = field(default_factory=deque)

    def apply(self, update: OrderUpdate, customer_id: str, seen_by: str, now: float) -> None:
        """Takes a frame that came at `now`. Its age runs from the commit at the source to this moment."""
        line = self.lines.get(update.order_id) or OrderLine(update, customer_id, seen_by)
        if not update.snapshot and update.committed:
            age_s = now - update.committed.timestamp()
            self._ages.append(age_s)
            self._times.append(now)
            self.updates += 1
            line = replace(line, changes=line.changes + 1, age_s=age_s, changed_s=now)
        self.lines[update.order_id] = replace(line, update=update)

    def latest(self, count: int) -> list[OrderLine]:
        """The orders that changed last, the newest first."""
        return sorted(self.lines.values(), key=lambda line: (line.changed_s, line.update.order_id), reverse=True)[
            :count
        ]

    def changed_since(self, moment: float) -> list[OrderLine]:
        """The orders that changed after `moment`, the oldest change first."""
        changed = (line for line in self.lines.values() if line.changed_s > moment)
        return sorted(changed, key=lambda line: line.changed_s)

    def rate(self, now: float) -> float:
        """Updates per second over the last five seconds."""
        while self._times and self._times[0] < now - RATE_WINDOW_S:
            self._times.popleft()
        return len(self._times) / RATE_WINDOW_S

    @property
    def median_age_s(self) -> float | None:
        """The median age of the last thousand updates; None before the first."""
        return median(self._ages) if self._ages else None

    @property
    def highest_age_s(self) -> float | None:
        """The highest age of the last thousand updates; None before the first."""
        return max(self._ages, default=None)


def read_update(frame: Mapping[str, Any], *, snapshot: bool) -> OrderUpdate:
    """Reads a frame of type `order_status_update`."""
    data = frame["data"]
    committed = frame.get("commit_time")
    return OrderUpdate(
        order_id=data["order_id"],
        status=data.get("status", ""),
        estimated_delivery=data.get("estimated_delivery", ""),
        tracking_number=data.get("tracking_number", ""),
        committed=datetime.fromisoformat(committed) if committed else None,
        snapshot=snapshot,
    )


def read_shards(answer: Mapping[str, Any]) -> tuple[ShardLine, ...]:
    """Reads the shard map as the edges give it to staff."""
    return tuple(_shard(each) for each in answer.get("shards", ()))


def _shard(shard: Mapping[str, Any]) -> ShardLine:
    replicas = shard.get("replicas", ())
    return ShardLine(
        store=shard["store"],
        partition=int(shard.get("partition", 0)),
        instances=tuple(each["instance"] for each in replicas),
        serving=tuple(bool(each.get("serving", False)) for each in replicas),
        lag_records=int(replicas[0].get("lag_records", 0)) if replicas else -1,
    )
