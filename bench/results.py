"""Collects measured values over several runs, prints them as a table and writes them with the machine's facts."""

import json
import platform
import statistics
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

RESULTS = Path(__file__).resolve().parent / "results"
UNITS = (
    ("_mb_per_s", "MB/s"),
    ("_reads", "reads"),
    ("_us_", "us"),
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
    """The unit that a metric's name tells: times, sizes, counts, or things per second."""
    return next((unit for part, unit in UNITS if part in metric), "1/s")


def percentiles(name: str, samples: Sequence[float], suffix: str = "") -> dict[str, float]:
    """The metrics `<name>_p50`, `_p90` and `_p99` of the samples. Raises ValueError for fewer than 100 samples."""
    if len(samples) < 100:
        raise ValueError(f"{name}: {len(samples)} samples do not give a 99th percentile; at least 100 are needed")
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return {f"{name}_p{percent}{suffix}": round(cuts[percent - 1], 1) for percent in (50, 90, 99)}


def combine(runs: Sequence[Mapping[str, float]]) -> list[Metric]:
    """One metric for each name, with the median over the runs."""
    names = list(runs[0]) if runs else []
    values = {name: [run[name] for run in runs] for name in names}
    return [Metric(name, statistics.median(values[name]), unit_of(name), values[name]) for name in names]


def measure_each(measurements: Mapping[str, Callable[[], list[Metric]]]) -> tuple[list[Metric], list[str]]:
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
    """Writes the suite's metrics, and the machine's facts with the settings beside them."""
    RESULTS.mkdir(exist_ok=True)
    _write(RESULTS / f"{suite}.json", [asdict(metric) for metric in metrics])
    _write(RESULTS / f"{suite}.machine.json", {**machine_facts(), "settings": dict(settings)})


def machine_facts() -> dict[str, object]:
    """What the values depend on: processor, memory, system, Python."""
    return {
        "cores": psutil.cpu_count(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "processor": _processor_name(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def table(metrics: Sequence[Metric]) -> str:
    """The metrics as aligned lines."""
    width = max(len(metric.metric) for metric in metrics)
    lines = [f"{m.metric:<{width}}  {m.value:>12,.1f} {m.unit:<4} {m.runs}" for m in metrics]
    return "\n".join(lines)


def _processor_name() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if not cpuinfo.exists():
        return platform.processor()
    names = [
        line.split(":", 1)[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
    ]
    return names[0] if names else platform.processor()


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n")
