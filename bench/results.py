"""Shares the parts of every suite: its command, and its values over several runs, with the facts of the machine."""

import json
import platform
import re
import statistics
import sys
import traceback
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

RESULTS = Path(__file__).resolve().parent / "results"
UNITS = (
    ("_slope", ""),
    ("_bytes_per_s", "B/s"),
    ("_mb_per_s", "MB/s"),
    ("_reads", "reads"),
    ("_us_", "us"),
    ("_cpu_us", "us"),
    ("_server_us", "us"),
    ("_ms", "ms"),
    ("_bytes", "B"),
    ("_kb", "KB"),
    ("stalled_sockets", "sockets"),
    ("stalled_skipped", "versions"),
    ("_mb", "MB"),
    ("_per_s", "1/s"),
    ("_percent", "%"),
    ("_in_flight", "calls"),
    ("_refused", "handshakes"),
    ("_frames_", "frames"),
    ("_keys", "keys"),
    ("restore_s", "s"),
    ("restart_s", "s"),
    ("start_s", "s"),
    ("_cores", "cores"),
    ("slots", "slots"),
)
"""Parts of metrics' names with the units that they tell; the first that is there counts."""


@dataclass(frozen=True)
class Metric:
    """One line of the table: the median over the runs, and the runs."""

    metric: str
    value: float
    unit: str
    runs: list[float]


def unit_of(metric: str) -> str:
    """Returns the unit that a metric's name tells: times, sizes, counts, or things per second."""
    return next((unit for part, unit in UNITS if part in metric), "1/s")


def percentiles(name: str, samples: Sequence[float], suffix: str = "") -> dict[str, float]:
    """Returns the metrics `<name>_p50`, `_p90` and `_p99` of the samples.

    Raises ValueError for fewer than 100 samples.
    """
    if len(samples) < 100:
        raise ValueError(f"{name}: {len(samples)} samples do not give a 99th percentile; at least 100 are needed")
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return {f"{name}_p{percent}{suffix}": round(cuts[percent - 1], 1) for percent in (50, 90, 99)}


def combine(runs: Sequence[Mapping[str, float]]) -> list[Metric]:
    """Returns one metric for each name, with the median over the runs that have it."""
    names = dict.fromkeys(name for run in runs for name in run)
    values = {name: [run[name] for run in runs if name in run] for name in names}
    return [Metric(name, statistics.median(values[name]), unit_of(name), values[name]) for name in names]


Measured = tuple[list[Metric], list[str]]  # the metrics, and the names of the measurements that failed


@dataclass(frozen=True)
class Suite:
    """A benchmark with a command of its own, `python -m bench.<name>`."""

    name: str
    description: str
    measurements: Sequence[str]
    options: Mapping[str, float]  # sizes that can be chosen on the command line, with their defaults
    settings: Mapping[str, object]  # notes beside the values, and beside the options
    measure: Callable[..., Measured]  # takes the names of measurements, and the options by name

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measures the chosen metrics; writes them down when those are all, or under another name if one is given.

        Returns 1 when one has failed.
        """
        parser = ArgumentParser(prog=f"python -m bench.{self.name}", description=self.description)
        parser.add_argument("--list", action="store_true", help="name the measurements, and measure nothing")
        only = "measure this, or what begins so"
        parser.add_argument("--only", action="append", default=[], metavar="NAME", help=only)
        into = "write results/NAME.json, whatever is measured; what could not be measured is left out"
        parser.add_argument("--into", metavar="NAME", help=into)
        for name, default in self.options.items():
            parser.add_argument(f"--{name}", type=type(default), default=default, help="(%(default)s)")
        chosen = vars(parser.parse_args(arguments))
        parts = tuple(f"{part}." for part in chosen["only"] or self.measurements)
        names = [name for name in self.measurements if f"{name}.".startswith(parts)]
        if not names:
            parser.error(f"--only: no measurement is of {', '.join(chosen['only'])}; --list names them")
        if chosen["list"]:
            print("\n".join(names))
            return 0
        options = {name: chosen[name] for name in self.options}
        metrics, failed = self.measure(names, **options)
        if metrics:
            print(table(metrics))
        for name in failed:
            print(f"{name} could not be measured; see above", file=sys.stderr)
        whole = not failed and len(names) == len(self.measurements) and options == self.options
        if chosen["into"] or whole:
            write(chosen["into"] or self.name, metrics, {**options, **self.settings})
        return 1 if failed else 0


def repeat(measure: Callable[[], Mapping[str, float]], runs: int) -> list[Metric]:
    return combine([measure() for _ in range(runs)])


def measure_each(measurements: Mapping[str, Callable[[], list[Metric]]]) -> Measured:
    """Makes the measurements, by name; also says which of them failed, and goes on with the others."""
    metrics: list[Metric] = []
    failed: list[str] = []
    for name, measure in measurements.items():
        print(f"measuring {name}", file=sys.stderr)
        try:
            metrics += measure()
        except Exception:  # noqa: BLE001  the others can be measured all the same
            traceback.print_exc()
            failed.append(name)
    return metrics, failed


def write(suite: str, metrics: Sequence[Metric], settings: Mapping[str, object]) -> None:
    """Writes the suite's metrics, and beside them their conditions: the machine's facts, and the settings."""
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*: (.+)", cpuinfo.read_text()) if cpuinfo.exists() else []
    machine = {
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "processor": names[0] if names else platform.processor(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "settings": dict(settings),
    }
    RESULTS.mkdir(exist_ok=True)
    for name, content in ((suite, [asdict(metric) for metric in metrics]), (f"{suite}.machine", machine)):
        (RESULTS / f"{name}.json").write_text(json.dumps(content, indent=2) + "\n")


def table(metrics: Sequence[Metric]) -> str:
    width = max(len(metric.metric) for metric in metrics)
    return "\n".join(f"{m.metric:<{width}}  {m.value:>12,.1f} {m.unit:<4} {m.runs}" for m in metrics)
