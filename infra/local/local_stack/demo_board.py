"""The demo's view: the newest state of each row, the age of updates on arrival, and the instances of each shard."""

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

from statecast.query.v1.query_pb2 import Replica, Shard

RATE_WINDOW_S = 5.0
MAX_AGES = 1000
FRESH_S = 1.0
OTHER_LINES = 12
HINT_LINES = 4  # of a hint, folded
NAMED_ROWS = 3


@dataclass(frozen=True)
class Kind:
    """A board's name for its rows, and the columns of their cells."""

    noun: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Line:
    """One row. Times are unix seconds: of the commit at the source, and of the last change that reached us."""

    name: str  # the same for every state of the row
    cells: tuple[str | Text, ...]  # one for each column of the board
    brief: str
    seen_by: str
    committed_s: float
    changes: int = 0
    age_s: float = 0.0
    changed_s: float = 0.0


@dataclass
class Board:
    """Gathers the rows that demo users see. Times are unix seconds, ages are seconds.

    Nobody watched before `since_s`: earlier changes are shown but not counted.
    """

    kind: Kind
    since_s: float = 0.0
    lines: dict[str, Line] = field(default_factory=dict)
    shards: Sequence[Shard] = ()  # by store and partition
    updates: int = 0
    problem: str = ""
    hint: str = ""  # the viewer's options, with line ends; empty for none
    _ages: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_AGES))
    _times: deque[float] = field(default_factory=deque)

    def apply(self, line: Line, now: float) -> None:
        """Takes a row that arrived at `now`. A row's first appearance is no change."""
        before = self.lines.setdefault(line.name, line)
        if line.committed_s <= before.committed_s:
            return
        if line.committed_s < self.since_s:
            self.lines[line.name] = line
            return
        line = replace(line, changes=before.changes + 1, age_s=now - line.committed_s, changed_s=now)
        self.lines[line.name] = line
        self._ages.append(line.age_s)
        self._times.append(now)
        self.updates += 1

    def changed_after(self, moment: float) -> list[Line]:
        """Returns the rows that changed after `moment`, the oldest change first; those that never did changed at 0."""
        changed = (line for line in self.lines.values() if line.changed_s > moment)
        return sorted(changed, key=lambda line: (line.changed_s, line.name))

    def latest(self, count: int) -> list[Line]:
        return self.changed_after(-1)[::-1][:count]

    def rate(self, now: float) -> float:
        while self._times and self._times[0] < now - RATE_WINDOW_S:
            self._times.popleft()
        return len(self._times) / RATE_WINDOW_S

    def ages(self) -> tuple[str, str]:
        """Returns the median and the highest age of the last thousand updates, for people; dashes before the first."""
        return (milliseconds(median(self._ages)), milliseconds(max(self._ages))) if self._ages else ("-", "-")


def batch_line(noun: str, changed: Sequence[Line], now: float) -> str:
    """Returns one line about rows that have changed, for a demo without a terminal."""
    named = ", ".join(line.brief for line in changed[-NAMED_ROWS:])
    more = f" and {len(changed) - NAMED_ROWS} more" if len(changed) > NAMED_ROWS else ""
    slowest = milliseconds(max(line.age_s for line in changed))
    at = datetime.fromtimestamp(now, UTC).strftime("%H:%M:%S")
    return f"{at}  {len(changed):3} {noun} changed, slowest after {slowest}: {named}{more}"


def draw(board: Board, address: str, seconds_left: float, now: float, height: int) -> RenderableType:
    """Returns the whole view, as high as the terminal has lines. `now` is in unix seconds."""
    hints = [Text(board.hint, style="dim", overflow="fold")] if board.hint else []
    rows = max(3, height - OTHER_LINES - len({shard.store for shard in board.shards}) - HINT_LINES * len(hints))
    return Group(
        _figures(board, address, now),
        _rows(board.kind, board.latest(rows), now),
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
        f"{board.kind.noun} watched": f"{len(board.lines)}",
    }
    grid = Table.grid(*(Column(justify="center", ratio=1) for _ in figures), expand=True)
    grid.add_row(*(f"[bold green]{value}[/]  [dim]{text}[/]" for text, value in figures.items()))
    return Panel(grid, title="[bold]Statecast[/]", subtitle=f"[dim]{address}[/]", box=box.ROUNDED)


def _rows(kind: Kind, lines: list[Line], now: float) -> Table:
    figures = (Column(text, justify="right", no_wrap=True) for text in ("changes", "age"))
    columns = (*(Column(text, no_wrap=True) for text in (*kind.columns, "seen by")), *figures)
    table = Table(*columns, box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    for line in lines:
        changes = (str(line.changes), milliseconds(line.age_s)) if line.changes else ()
        table.add_row(*line.cells, line.seen_by, *changes, style="bold" if now - line.changed_s < FRESH_S else "")
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
