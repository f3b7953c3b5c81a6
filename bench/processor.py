"""Measures the stream-processor alone, and writes bench/results/processor.json: `make bench-processor`."""

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from bench.processor_latency import Pause, Sample, figures, outside, p99_ms, pauses
from bench.processor_rig import CHECKPOINT_S, PARTITIONS, TRIGGERS, Rig, broker, rig
from bench.processor_workload import GROUPS, ROWS, SHAPES, Bank, Shape
from bench.results import Measured, Metric, Suite, combine, measure_each
from testkit.stream_processor.process import wait_until

WARM_S = 6.0
WINDOW_S = float(CHECKPOINT_S)
"""Each window meets a checkpoint."""
RUNS = 3
SETTLE_S = 2.0
STEP_S = 6.0
STEPS = (10_000, 15_000, 20_000, 25_000, 30_000)
BEARABLE_MS = 1_000.0
BACKLOG = 600_000

Window = tuple[int, int]
"""The first change of it, and the first after it."""


@dataclass(frozen=True)
class Measurements:
    """Measures one shape of pipeline; each call starts a processor of its own."""

    bootstrap: str
    bank: Bank

    def latency(self, name: str, mode: str, rates: Sequence[int], state: bool) -> list[Metric]:
        """The figures of each of RUNS windows at each rate; with `state`, what a row takes in a checkpoint too."""
        shape = SHAPES[name]
        count = ROWS + round(sum(rates) * (WARM_S + RUNS * WINDOW_S))
        with rig(self.bootstrap, shape, mode, self.bank, count) as made:
            _prepare(made, shape)
            taken = [{f"state_bytes_per_row.{name}": _state_bytes(made, shape)}] if state else []
            windows = {rate: _windows(made, rate) for rate in rates}
            read(made, shape)
            apart = _pauses(made, shape) if mode == "realtime" else []
            runs: list[dict[str, float]] = [{} for _ in range(RUNS)]
            for rate, cut in windows.items():
                for run, window in zip(runs, cut, strict=True):
                    samples = _samples(made, window)
                    run.update(figures(mode, f".{name}.{rate}", samples, _within(apart, samples)))
            return [*combine(taken), *combine(runs)]

    def sustained(self, name: str) -> list[Metric]:
        """The highest of STEPS at which the p99 outside checkpoints stays bearable; 0 when it is none of them."""
        shape = SHAPES[name]
        highest = 0
        with rig(self.bootstrap, shape, "realtime", self.bank, ROWS + round(sum(STEPS) * (SETTLE_S + STEP_S))) as made:
            _prepare(made, shape)
            for rate in STEPS:
                made.load.send_at(rate, SETTLE_S)
                window = _window(made, rate, STEP_S)
                read(made, shape)
                samples = _samples(made, window)
                if p99_ms(outside(samples, _within(_pauses(made, shape), samples))) > BEARABLE_MS:
                    break
                highest = rate
        return combine([{f"sustained_changes_per_s.{name}": highest}])

    def drain(self, mode: str) -> list[Metric]:
        """How fast `latest` works off what had gathered before it started, from its first record to its last.

        The CPU per change is that of the whole life of the processor's JVM, its start included; unlike the rate it
        says something on a busy machine too.
        """
        shape = SHAPES["latest"]
        with rig(self.bootstrap, shape, mode, self.bank, BACKLOG) as made:
            made.load.send_all(BACKLOG)
            made.start()
            # Who reads what comes would take a core from it.
            made.sink.wait_until_quiet()
            used_s = made.cpu_s()
            read(made, shape)
            stamps = [time for times in made.sink.appended.times_ms.values() for time in times]
            rate = round(BACKLOG * 1000 / (max(stamps) - min(stamps)))
            cpu_us = round(used_s * 1e6 / BACKLOG, 1)
            return combine([{f"drain_changes_per_s.{mode}": rate, f"drain_cpu_us_per_change.{mode}": cpu_us}])


def read(made: Rig, shape: Shape) -> None:
    """Reads the sink until nothing that was sent is missing. Raises TimeoutError when something stays so.

    A batch may write the newest of several changes of a row or group only, so the newest of each is what must come.
    """
    newest: dict[str, int] = {}
    for index in range(len(made.load.sent_ms)):
        newest.update(dict.fromkeys(shape.written(index), index))
    missing = set(newest.values())

    def complete() -> bool:
        missing.difference_update([index for index in missing if index in made.sink.appended.at_ms])
        return not missing

    made.sink.read_until(complete)


def _prepare(made: Rig, shape: Shape) -> None:
    made.start()
    made.load.send_all(ROWS)
    read(made, shape)


def _state_bytes(made: Rig, shape: Shape) -> float:
    """Right after each row was written once, and came into a checkpoint."""
    before = len(made.commits_ms(shape.pipeline))
    wait_until(lambda: len(made.commits_ms(shape.pipeline)) > before, lambda: made.processor.log)
    return round(made.changelog_bytes(shape.pipeline) / ROWS, 1)


def _windows(made: Rig, rate: int) -> list[Window]:
    made.load.send_at(rate, WARM_S)
    return [_window(made, rate, WINDOW_S) for _ in range(RUNS)]


def _window(made: Rig, rate: int, seconds: float) -> Window:
    first = len(made.load.sent_ms)
    made.load.send_at(rate, seconds)
    return first, len(made.load.sent_ms)


def _samples(made: Rig, window: Window) -> list[Sample]:
    sent, at = made.load.sent_ms, made.sink.appended.at_ms
    return [Sample(sent[index], at[index]) for index in range(*window) if index in at]


def _pauses(made: Rig, shape: Shape) -> list[Pause]:
    return pauses(made.sink.appended.times_ms, made.commits_ms(shape.pipeline))


def _within(apart: Sequence[Pause], samples: Sequence[Sample]) -> list[Pause]:
    first = min((sample.sent_ms for sample in samples), default=0.0)
    last = max((sample.appended_ms for sample in samples), default=0.0)
    return [pause for pause in apart if pause.from_ms < last and 2 * pause.until_ms - pause.from_ms > first]


RATES = (1_000, 10_000)
Job = Callable[[], list[Metric]]


def every_name() -> list[str]:
    """The names of all measurements."""
    latency = [f"latency.{shape}.{mode}.{rate}" for shape in SHAPES for mode in TRIGGERS for rate in RATES]
    state = [f"state.{shape}" for shape in SHAPES]
    return [*latency, *state, *(f"sustained.{shape}" for shape in SHAPES), *(f"drain.{mode}" for mode in TRIGGERS)]


def measure(names: Sequence[str]) -> Measured:
    """Makes the measurements one after the other, on one broker."""
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with broker() as bootstrap:
        return measure_each(dict(_jobs(Measurements(bootstrap, Bank()), set(names))))


def _jobs(measurements: Measurements, names: set[str]) -> Iterator[tuple[str, Job]]:
    """What must be called for the names: all rates of a shape and a mode share a processor, and its state is theirs."""
    for shape in SHAPES:
        for mode in TRIGGERS:
            rates = [rate for rate in RATES if f"latency.{shape}.{mode}.{rate}" in names]
            state = mode == "realtime" and f"state.{shape}" in names
            if rates or state:
                yield f"latency.{shape}.{mode}", partial(measurements.latency, shape, mode, rates, state)
    for shape in SHAPES:
        if f"sustained.{shape}" in names:
            yield f"sustained.{shape}", partial(measurements.sustained, shape)
    for mode in TRIGGERS:
        if f"drain.{mode}" in names:
            yield f"drain.{mode}", partial(measurements.drain, mode)


SUITE = Suite(
    name="processor",
    description=__doc__,
    measurements=tuple(every_name()),
    options={},
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
        "steps_per_s": STEPS,
    },
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(SUITE.main())
