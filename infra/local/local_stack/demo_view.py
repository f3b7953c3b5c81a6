"""Draws the board on a terminal."""

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from local_stack.demo_board import Board, OrderLine, ShardLine

FRESH_S = 1.0
OTHER_LINES = 12

STATUS_STYLES = {
    "Placed": "white",
    "Paid": "cyan",
    "Packed": "blue",
    "Shipped": "yellow",
    "Delivered": "green",
    "Cancelled": "red",
    "Deleted": "bright_black",
}


def draw(board: Board, where: str, seconds_left: float, now: float, height: int) -> RenderableType:
    """The whole view, as high as the terminal has lines. `now` is in unix seconds."""
    stores = sorted({shard.store for shard in board.shards})
    rows = max(3, height - OTHER_LINES - len(stores))
    return Group(
        _figures(board, where, now),
        _orders(board.latest(rows), now),
        _shards(stores, board.shards),
        Text(board.problem or f"{seconds_left:.0f} s left; any key ends it", style="red" if board.problem else "dim"),
    )


def _figures(board: Board, where: str, now: float) -> Panel:
    grid = Table.grid(expand=True)
    for _ in range(4):
        grid.add_column(justify="center", ratio=1)
    grid.add_row(
        _figure(milliseconds(board.median_age_s), "commit to client, median"),
        _figure(milliseconds(board.highest_age_s), "the slowest"),
        _figure(f"{board.rate(now):.1f} /s", "updates here"),
        _figure(f"{len(board.lines)}", "orders watched"),
    )
    return Panel(grid, title="[bold]Statecast[/]", subtitle=f"[dim]{where}[/]", box=box.ROUNDED)


def _figure(value: str, caption: str) -> Text:
    return Text.assemble((value, "bold green"), "  ", (caption, "dim"))


def _orders(lines: list[OrderLine], now: float) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    for column in ("order", "customer", "status", "delivery", "tracking", "seen by"):
        table.add_column(column, no_wrap=True)
    table.add_column("changes", justify="right")
    table.add_column("age", justify="right", no_wrap=True)
    for line in lines:
        fresh = now - line.changed_s < FRESH_S
        table.add_row(*_order_cells(line), style="bold" if fresh else "")
    return table


def _order_cells(line: OrderLine) -> tuple[str | Text, ...]:
    update = line.update
    return (
        update.order_id,
        line.customer_id,
        Text(update.status, style=STATUS_STYLES.get(update.status, "magenta")),
        update.estimated_delivery,
        update.tracking_number,
        line.seen_by,
        str(line.changes or ""),
        milliseconds(line.age_s) if line.age_s is not None else "",
    )


def _shards(stores: list[str], shards: tuple[ShardLine, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False)
    table.add_column("store")
    for partition in sorted({shard.partition for shard in shards}):
        table.add_column(f"shard {partition}: owner, replica", no_wrap=True)
    for store in stores:
        mine = sorted((shard for shard in shards if shard.store == store), key=lambda shard: shard.partition)
        table.add_row(store, *(_shard_cell(shard) for shard in mine))
    return table


def _shard_cell(shard: ShardLine) -> Text:
    cell = Text()
    for rank, (instance, serving) in enumerate(zip(shard.instances, shard.serving, strict=True)):
        cell.append(", " if rank else "")
        cell.append(instance, style=("bold green" if rank == 0 else "green") if serving else "red")
    return cell.append(f"  +{shard.lag_records}" if shard.lag_records > 0 else "")


def milliseconds(age_s: float | None) -> str:
    """An age as whole milliseconds; a dash when it is not known."""
    return "-" if age_s is None else f"{age_s * 1000:.0f} ms"
