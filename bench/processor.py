"""Measures the stream-processor alone, and writes bench/results/processor.json: `make bench-processor`."""

import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.drains import BACKLOG, drain_ours, prepare
from bench.processor_latency import Pause, Sample, figures, longest_ms, outside, p99_ms, pauses
from bench.processor_rest import at_rest
from bench.processor_rig import CHECKPOINT_S, PARTITIONS, PIPELINES, TRIGGERS, Rig, empty_pipelines, rig
from bench.processor_workload import GROUPS, ROWS, SHAPES, Bank
from bench.results import Measured, Metric, Suite, combine, measure_each
from statecast_domains.directories import pipeline_files
from testkit.broker import running_broker
from testkit.stream_processor.process import wait_until

WARM_S = 6.0
WINDOW_S = float(CHECKPOINT_S)  # each window meets a checkpoint
RUNS = 3
SETTLE_S = 2.0
STEP_S = 6.0
STEPS = (10_000, 15_000, 20_000, 25_000, 30_000)
BEARABLE_MS = 1_000.0
PAUSE_RATE = 1_000
CHECKPOINTS = 12

Window = tuple[int, int]  # the first change of it, and the first after it


@dataclass(frozen=True)
class Measurements:
    """Measures one shape of pipeline; each call starts a processor of its own."""

    bootstrap: str
    bank: Bank
    checkpoints: int = CHECKPOINTS

    def pauses(self, name: str) -> list[Metric]:
        """Measures how long each of several checkpoints delays a change at most, at PAUSE_RATE; each is one run.

        The first checkpoints after the start are left out: their code runs for the first time.
        """
        warm_s, seconds = WARM_S + CHECKPOINT_S, (self.checkpoints + 1) * (CHECKPOINT_S + 1)
        count = ROWS + round(PAUSE_RATE * (warm_s + seconds))
        with rig(self.bootstrap, SHAPES[name], "realtime", self.bank, count) as bench_rig:
            prepare(bench_rig)
            bench_rig.load.send_at(PAUSE_RATE, warm_s)
            window = _window(bench_rig, PAUSE_RATE, seconds)
            bench_rig.read()
            samples = _samples(bench_rig, window)
            apart = pauses(bench_rig.sink.times_ms, bench_rig.commits_ms())
            inside = [pause for pause in apart if samples[0].sent_ms < pause.from_ms < samples[-1].sent_ms]
            return combine(
                [{f"checkpoint_pause_ms.{name}": longest_ms(samples, pause)} for pause in inside[: self.checkpoints]]
            )

    def latency(self, name: str, mode: str, rates: Sequence[int], state: bool) -> list[Metric]:
        """Measures each of RUNS windows at each rate; with `state`, the bytes of a row in a checkpoint too."""
        count = ROWS + round(sum(rates) * (WARM_S + RUNS * WINDOW_S))
        windows: dict[int, list[Window]] = {}
        with rig(self.bootstrap, SHAPES[name], mode, self.bank, count) as bench_rig:
            prepare(bench_rig)
            metrics = combine([{f"state_bytes_per_row.{name}": _state_bytes(bench_rig)}]) if state else []
            for rate in rates:
                bench_rig.load.send_at(rate, WARM_S)
                windows[rate] = [_window(bench_rig, rate, WINDOW_S) for _ in range(RUNS)]
            bench_rig.read()
            apart = pauses(bench_rig.sink.times_ms, bench_rig.commits_ms()) if mode == "realtime" else []
            for rate in rates:
                samples = [_samples(bench_rig, window) for window in windows[rate]]
                metrics += combine([figures(mode, f".{name}.{rate}", each, _within(apart, each)) for each in samples])
            return metrics

    def sustained(self, name: str) -> list[Metric]:
        """Finds the highest of STEPS at which the p99 outside checkpoints stays bearable; 0 when it is none of them."""
        highest = 0
        count = ROWS + round(sum(STEPS) * (SETTLE_S + STEP_S))
        with rig(self.bootstrap, SHAPES[name], "realtime", self.bank, count) as bench_rig:
            prepare(bench_rig)
            for rate in STEPS:
                bench_rig.load.send_at(rate, SETTLE_S)
                window = _window(bench_rig, rate, STEP_S)
                bench_rig.read()
                samples = _samples(bench_rig, window)
                apart = pauses(bench_rig.sink.times_ms, bench_rig.commits_ms())
                if p99_ms(outside(samples, _within(apart, samples))) > BEARABLE_MS:
                    break
                highest = rate
        return combine([{f"sustained_changes_per_s.{name}": highest}])

    def drain(self, mode: str) -> list[Metric]:
        """Measures how fast `latest` works off a backlog, and the CPU time that it takes for each change."""
        drained = drain_ours(self.bootstrap, "latest", mode, self.bank)
        figures = {
            f"drain_changes_per_s.{mode}": drained.changes_per_s,
            f"drain_cpu_us_per_change.{mode}": drained.cpu_us,
        }
        return combine([figures])

    def starts(self, count: int) -> list[Metric]:
        """From the start of a process with so many of the shipped pipelines until all of them are ready, RUNS times."""
        runs = []
        for _ in range(RUNS):
            with empty_pipelines(self.bootstrap, count) as processor:
                began = time.monotonic()
                processor.start()
                processor.wait_ready()
                runs.append({f"start_s.{count}": round(time.monotonic() - began, 1)})
        return combine(runs)


def _state_bytes(bench_rig: Rig) -> float:
    """Bytes of state per row, right after each row was written once and is part of a checkpoint."""
    before = len(bench_rig.commits_ms())
    wait_until(lambda: len(bench_rig.commits_ms()) > before, lambda: bench_rig.processor.log)
    return round(bench_rig.changelog_bytes() / ROWS, 1)


def _window(bench_rig: Rig, rate: int, seconds: float) -> Window:
    first = len(bench_rig.load.sent_ms)
    bench_rig.load.send_at(rate, seconds)
    return first, len(bench_rig.load.sent_ms)


def _samples(bench_rig: Rig, window: Window) -> list[Sample]:
    sent, at = bench_rig.load.sent_ms, bench_rig.sink.at_ms
    return [Sample(sent[index], at[index]) for index in range(*window) if index in at]


def _within(apart: Sequence[Pause], samples: Sequence[Sample]) -> list[Pause]:
    first = min((sample.sent_ms for sample in samples), default=0.0)
    last = max((sample.appended_ms for sample in samples), default=0.0)
    return [pause for pause in apart if pause.from_ms < last and pause.recovered_ms > first]


RATES = (1_000, 10_000)
STARTED = (1, len(pipeline_files([PIPELINES])))  # pipelines in one process
Job = Callable[[], list[Metric]]
MODES = [(name, mode) for name, shape in SHAPES.items() for mode in shape.modes]
IN_REAL_TIME = [name for name, mode in MODES if mode == "realtime"]
NAMES = (
    *(f"latency.{shape}.{mode}.{rate}" for (shape, mode), rate in product(MODES, RATES)),
    *(f"state.{shape}" for shape in IN_REAL_TIME),
    *(f"pauses.{shape}" for shape in IN_REAL_TIME),
    *(f"sustained.{shape}" for shape in IN_REAL_TIME),
    *(f"drain.{mode}" for mode in TRIGGERS),
    *(f"starts.{count}" for count in STARTED),
    f"rest.{STARTED[-1]}",
)


def measure(names: Sequence[str], checkpoints: int) -> Measured:
    """Makes the measurements one after the other, on one broker."""
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with TemporaryDirectory(prefix="statecast-bench-") as directory, running_broker(Path(directory)) as broker:
        return measure_each(dict(_jobs(Measurements(broker.bootstrap, Bank(), checkpoints), set(names))))


def _jobs(measurements: Measurements, names: set[str]) -> Iterator[tuple[str, Job]]:
    """Yields the measurements for the names; all rates of a shape and a mode share a processor with its state."""
    for shape, mode in MODES:
        rates = [rate for rate in RATES if f"latency.{shape}.{mode}.{rate}" in names]
        state = mode == "realtime" and f"state.{shape}" in names
        if rates or state:
            yield f"latency.{shape}.{mode}", partial(measurements.latency, shape, mode, rates, state)
    single: dict[str, Job] = {f"pauses.{shape}": partial(measurements.pauses, shape) for shape in IN_REAL_TIME}
    single |= {f"sustained.{shape}": partial(measurements.sustained, shape) for shape in IN_REAL_TIME}
    single |= {f"drain.{mode}": partial(measurements.drain, mode) for mode in TRIGGERS}
    single |= {f"starts.{count}": partial(measurements.starts, count) for count in STARTED}
    # The last one, because it leaves changes in the topics.
    single[f"rest.{STARTED[-1]}"] = partial(at_rest, measurements.bootstrap, STARTED[-1])
    yield from ((name, job) for name, job in single.items() if name in names)


SUITE = Suite(
    name="processor",
    description=__doc__,
    measurements=NAMES,
    options={"checkpoints": CHECKPOINTS},
    settings={
        "partitions": PARTITIONS,
        "rows": ROWS,
        "groups": GROUPS,
        "backlog": BACKLOG,
        "checkpoint_interval_s": CHECKPOINT_S,
        "micro_batch": TRIGGERS["microbatch"],
        "warm_up_s": WARM_S,
        "window_s": WINDOW_S,
        "runs": RUNS,
        "pause_rate_per_s": PAUSE_RATE,
        "steps_per_s": STEPS,
    },
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
