"""Measures the stream-processor alone, and writes bench/results/processor.json: `make bench-processor`."""

import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterator, Sequence

from bench.processor_measurements import BACKLOG, RUNS, STEPS, WARM_S, WINDOW_S, Measurements
from bench.processor_rig import CHECKPOINT_S, PARTITIONS, TRIGGERS, broker
from bench.processor_workload import GROUPS, ROWS, SHAPES, Bank
from bench.results import Metric, measure_each, table, write

RATES = (1_000, 10_000)
SETTINGS: dict[str, object] = {
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
}

Job = Callable[[], list[Metric]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures what is chosen; only when all is, writes it down."""
    parser = ArgumentParser(prog="python -m bench.processor", description=__doc__)
    parser.add_argument("--list", action="store_true", help="print the names of the measurements")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="measure this alone, or all whose names go on after it with a dot",
    )
    chosen = parser.parse_args(arguments)
    names = [name for name in every_name() if not chosen.only or any(_is_of(name, part) for part in chosen.only)]
    if not names:
        parser.error(f"--only: no measurement is of {', '.join(chosen.only)}; --list names them")
    if chosen.list:
        print("\n".join(names))
        return
    # Ended from outside, it still ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    metrics, failed = measure(names)
    if metrics:
        print(table(metrics))
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}; nothing was written")
    if not chosen.only:
        write("processor", metrics, SETTINGS)


def _is_of(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def every_name() -> list[str]:
    """The names of all measurements."""
    latency = [f"latency.{shape}.{mode}.{rate}" for shape in SHAPES for mode in TRIGGERS for rate in RATES]
    state = [f"state.{shape}" for shape in SHAPES]
    return [*latency, *state, *(f"sustained.{shape}" for shape in SHAPES), *(f"drain.{mode}" for mode in TRIGGERS)]


def measure(names: Sequence[str]) -> tuple[list[Metric], list[str]]:
    """Measures the named on one broker: see measure_each."""
    with broker() as bootstrap:
        return measure_each(dict(_jobs(Measurements(bootstrap, Bank()), set(names))))


def _jobs(measurements: Measurements, names: set[str]) -> Iterator[tuple[str, Job]]:
    """What must be called for the names: all rates of a shape and a mode share a processor, and its state is theirs."""
    for shape in SHAPES:
        for mode in TRIGGERS:
            rates = [rate for rate in RATES if f"latency.{shape}.{mode}.{rate}" in names]
            state = mode == "realtime" and f"state.{shape}" in names
            if rates or state:
                yield f"latency.{shape}.{mode}", _latency(measurements, shape, mode, rates, state)
    for shape in SHAPES:
        if f"sustained.{shape}" in names:
            yield f"sustained.{shape}", _sustained(measurements, shape)
    for mode in TRIGGERS:
        if f"drain.{mode}" in names:
            yield f"drain.{mode}", _drain(measurements, mode)


def _latency(measurements: Measurements, shape: str, mode: str, rates: list[int], state: bool) -> Job:
    return lambda: measurements.latency(shape, mode, rates, state)


def _sustained(measurements: Measurements, shape: str) -> Job:
    return lambda: measurements.sustained(shape)


def _drain(measurements: Measurements, mode: str) -> Job:
    return lambda: measurements.drain(mode)


if __name__ == "__main__":
    main()
