"""Writes docs/sizing.md and its plots from bench/results/scale.json: `make sizing-page`."""

import json
import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from bench.results import RESULTS
from bench.scale_sizes import AXES, LARGE, Sizes, slopes

DOCS = Path(__file__).resolve().parents[1] / "docs"
COLUMNS = 3
DISTINCT = 1.5
"""The ratio of two values from which both have a tick."""
WIDTH = 120
GROWTH = {"Grows at least in step": 0.9, "Grows less": 0.1, "Stays": -0.1, "Falls": -math.inf}
"""Kinds of growth by their least slopes."""
METRICS = {
    "rss_mb": "memory of an instance, MB",
    "disk_mb": "disk of an instance, MB",
    "restart_s": "restart of one instance with its disk, s",
    "restore_s": "restart with an empty disk, s",
    "rest_cores": "all instances at rest, cores",
    "gets_per_s_owner": "gets/s at the owner",
    "gets_per_s_forwarded": "gets/s, forwarded",
    "get_ms_p99_owner": "get at the owner, p99, ms",
    "failover_gap_ms": "longest gap when an owner is killed, ms",
    "failover_failed_reads": "failed reads when an owner is killed",
    "membership_rest_bytes_per_s": "members and broker at rest, bytes/s",
    "listing_bytes_per_s": "listing of partitions at rest, bytes/s",
    "membership_change_kb": "one member joins or leaves, KB",
    "membership_join_known_ms": "all know a new member, ms",
    "membership_leave_known_ms": "all know that a member left, ms",
    "first_map_ms": "first shard map, ms",
    "first_map_loop_held_ms": "event loop held by the first map, ms",
}
NEEDS = {
    "rss_mb": "memory, MB",
    "disk_mb": "disk, MB",
    "restart_s": "a restart with its disk, s",
    "restore_s": "a restart with an empty disk, s",
}
TRAFFIC = ("membership_rest_bytes_per_s", "listing_bytes_per_s")


@dataclass(frozen=True)
class Demand(Sizes):
    """The cluster of the worked example."""

    rows: int = 20_000_000
    partitions: int = 16
    instances: int = 6
    stores: int = 10
    row_bytes: int = 500
    replicas: int = 2


class Results:
    """The figures of one run with its settings, and how they grow."""

    def __init__(self, directory: Path) -> None:
        """Raises ValueError when the file has no figure of an axis, as those of older builds."""
        metrics = json.loads((directory / "scale.json").read_text())
        self.machine = json.loads((directory / "scale.machine.json").read_text())
        self.figures: Mapping[str, float] = {each["metric"]: each["value"] for each in metrics}
        self.slopes = slopes({name: value for name, value in self.figures.items() if "_slope." not in name})
        for axis in AXES:
            if not self.along(axis):
                raise ValueError(f"scale.json has no figures of {axis}: run `make bench-scale`")

    def along(self, axis: str) -> dict[str, list[float]]:
        """Returns each metric that was measured at all points of an axis, with its values."""
        values = {metric: [self.figures.get(f"{metric}.{sizes.point}") for sizes in AXES[axis]] for metric in METRICS}
        return {
            metric: whole
            for metric, some in values.items()
            if len(whole := [value for value in some if value is not None]) == len(some)
        }

    def each(self, metric: str, axis: str) -> float:
        """Returns by how much a metric grows with one more row, or partition, from the first point to the last."""
        first, *_, last = AXES[axis]
        grown = self.figures[f"{metric}.{last.point}"] - self.figures[f"{metric}.{first.point}"]
        further: int = getattr(last, axis) - getattr(first, axis)
        return max(0.0, grown / further)

    def fixed(self, metric: str) -> float:
        """Returns what an instance without rows and partitions would have of a metric."""
        base = Sizes()
        growing = self.each(metric, "rows") * base.rows + self.each(metric, "partitions") * base.partitions
        return max(0.0, self.figures[f"{metric}.base"] - growing)

    def traffic(self, sizes: Sizes) -> float:
        """Returns the bytes a second that all members exchange at rest, by the slopes of the axes."""
        total = 0.0
        for metric in TRAFFIC:
            bytes_per_s = self.figures[f"{metric}.base"]
            for axis in ("partitions", "instances", "stores"):
                ratio = getattr(sizes, axis) / getattr(Sizes(), axis)
                bytes_per_s *= ratio ** self.slopes.get(f"{metric}_slope.{axis}", 0.0)
            total += bytes_per_s
        return total


def write_page(results: Path = RESULTS, docs: Path = DOCS, demand: Demand = Demand()) -> None:
    """Writes `sizing.md`, and beside it the directory of its plots, one for each axis."""
    read = Results(results)
    (docs / "sizing").mkdir(exist_ok=True)
    for axis in AXES:
        _plot(read, axis, docs / "sizing" / f"{axis}.svg")
    (docs / "sizing.md").write_text("\n".join([*_head(read), *_example(read, demand), *_axes(read)]) + "\n")


def _plot(results: Results, axis: str, file: Path) -> None:
    """Plots all metrics of an axis that are above 0; both scales are logarithmic.

    The salt makes the ids of the file the same in each run.
    """
    values = {metric: each for metric, each in results.along(axis).items() if min(each) > 0}
    sizes = [getattr(each, axis) for each in AXES[axis]]
    rows = -(-len(values) // COLUMNS)
    with matplotlib.rc_context(
        {"svg.hashsalt": "sizing", "svg.fonttype": "none", "font.size": 8.0, "axes.grid": True, "grid.color": "#dddddd"}
    ):
        figure = Figure(figsize=(10, 2.1 * rows), layout="constrained")
        for number, (metric, each) in enumerate(values.items(), 1):
            plot = figure.add_subplot(rows, COLUMNS, number)
            plot.loglog(sizes, each, marker="o", markersize=3, color="#1f5fa8")
            plot.set_title(f"{METRICS[metric]}: {results.slopes[f'{metric}_slope.{axis}']:+.2f}", fontsize=8)
            plot.set_xlabel(axis)
            plot.minorticks_off()
            plot.set_xticks(sizes, [f"{size:,}" for size in sizes])
            ticks = [min(each), max(each)] if max(each) > DISTINCT * min(each) else [each[-1]]
            plot.set_yticks(ticks, [f"{tick:,.10g}" for tick in ticks])
            plot.set_ylim(min(each) / 2, max(each) * 2)
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})


def _paragraph(text: str) -> list[str]:
    return [*textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False), ""]


def _head(results: Results) -> list[str]:
    machine, settings = results.machine, results.machine["settings"]
    return [
        "# Sizing the query service",
        "",
        *_paragraph(
            "Shows how a cluster grows with its rows, partitions, instances and stores, and computes "
            "what one of a given size needs. `make bench-scale` measures it and writes this page "
            "from `bench/results/scale.json`; `make sizing-page` writes the page alone."
        ),
        *_paragraph(
            f"All instances, the broker and the client shared {machine['cores']} cores and "
            f"{machine['memory_gib']:g} GiB: throughput with many instances shows how they share these cores. "
            f"Each row has {settings['row_bytes']} bytes with its key, which do not compress, "
            f"and {settings['replicas']} replicas."
        ),
    ]


def _example(results: Results, demand: Demand) -> list[str]:
    copies = min(demand.replicas, demand.instances)
    rows = demand.rows * copies / demand.instances
    partitions = demand.stores * demand.partitions * copies / demand.instances
    measured_bytes = results.machine["settings"]["row_bytes"]
    grown = demand.row_bytes / measured_bytes
    measured = sum(results.figures[f"{metric}.{LARGE.point}"] for metric in TRAFFIC)
    return [
        "## An example",
        "",
        *_paragraph(
            f"Computes what N = {demand.rows:,} rows of B = {demand.row_bytes} bytes need, "
            f"in S = {demand.stores} stores of P = {demand.partitions} partitions, "
            f"with R = {demand.replicas} replicas on I = {demand.instances} instances. "
            f"Each instance holds n = N R / I = {rows:,.0f} rows and p = S P R / I = {partitions:,.0f} partitions; "
            f"b = B / {measured_bytes} = {grown:.2f}."
        ),
        "| each instance needs | formula | here |",
        "|---|---|---|",
        *(_need(results, metric, name, rows, partitions, grown) for metric, name in NEEDS.items()),
        "",
        *_paragraph(
            f"At rest, all members together exchange {results.traffic(demand):,.0f} bytes/s: "
            f"{' with the broker and for the listing of partitions '.join(_powers(results, each) for each in TRAFFIC)}."
        ),
        *_paragraph(
            f"For {LARGE.instances} instances, {LARGE.stores} stores and {LARGE.partitions} partitions of each, "
            f"this formula gives {results.traffic(LARGE):,.0f} bytes/s; {measured:,.0f} bytes/s were measured."
        ),
    ]


def _need(results: Results, metric: str, name: str, rows: float, partitions: float, grown: float) -> str:
    fixed, row, partition = results.fixed(metric), results.each(metric, "rows"), results.each(metric, "partitions")
    formula = f"`{fixed:,.1f} + {row * 1e6:,.2f} * b * n / 1,000,000 + {partition:,.3f} * p`"
    return f"| {name} | {formula} | {fixed + row * rows * grown + partition * partitions:,.0f} |"


def _powers(results: Results, metric: str) -> str:
    base = Sizes()
    powers = " * ".join(
        f"({letter} / {getattr(base, axis)})^{results.slopes.get(f'{metric}_slope.{axis}', 0.0):.2f}"
        for letter, axis in (("P", "partitions"), ("I", "instances"), ("S", "stores"))
    )
    return f"`{results.figures[f'{metric}.base']:,.0f} * {powers}`"


def _axes(results: Results) -> list[str]:
    lines = [
        "## What grows how",
        "",
        *_paragraph(
            "The slope is the exponent of a power law through the first and the last point of an axis: "
            "1 grows as the size, 0 not at all. "
            "The last column is the factor of the figure when the size is ten times as large."
        ),
    ]
    for axis, points in AXES.items():
        first = points[0]
        others = ", ".join(f"{each} = {getattr(first, each):,}" for each in AXES if each != axis)
        sizes = [f"{getattr(sizes, axis):,}" for sizes in points]
        lines += [
            f"### {axis.capitalize()}",
            "",
            f"With {others}.",
            "",
            *_meaning(results, axis),
            f"![What grows with {axis}: a plot for each row of the table](sizing/{axis}.svg)",
            "",
            f"| with so many {axis} | {' | '.join(sizes)} | slope | ten times |",
            f"|---|{'---|' * (len(sizes) + 2)}",
            *(_row(results, axis, metric, values) for metric, values in results.along(axis).items()),
            "",
        ]
    return lines[:-1]


def _meaning(results: Results, axis: str) -> list[str]:
    """Says in words what grows with an axis."""
    names: dict[str, list[str]] = {kind: [] for kind in GROWTH}
    for metric, name in METRICS.items():
        slope = results.slopes.get(f"{metric}_slope.{axis}")
        if slope is not None:
            names[next(kind for kind, least in GROWTH.items() if slope >= least)].append(name)
    return [line for kind, some in names.items() if some for line in _paragraph(f"{kind}: {'; '.join(some)}.")]


def _row(results: Results, axis: str, metric: str, values: list[float]) -> str:
    slope = results.slopes.get(f"{metric}_slope.{axis}")
    growth = " | " if slope is None else f"{slope:.2f} | {10**slope:,.3g}"
    return f"| {METRICS[metric]} | {' | '.join(f'{value:,.10g}' for value in values)} | {growth} |"


if __name__ == "__main__":
    write_page()
