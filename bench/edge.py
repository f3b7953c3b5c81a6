"""Measures one ws-edge before a real query service, and writes bench/results/edge.json: `make bench-edge`."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench import edge_measurements as measurements
from bench.edge_resumes import resumes
from bench.edge_revocation import revocation
from bench.edge_rig import EdgeRig, edge_rig
from bench.results import Metric, combine, measure_each, table, write

RUNS = 3
SOCKETS = 5_000
SECONDS = 10.0
MEASUREMENTS: Mapping[str, Callable[[EdgeRig], dict[str, float]]] = {
    "sockets": measurements.sockets,
    "ages": measurements.ages,
    "upstream": measurements.upstream,
    "edges": measurements.edges,
    "stalled": measurements.stalled,
    "hot_key": measurements.hot_key,
    "frames": measurements.frames,
    "resumes": resumes,
    "revocation": revocation,
}
SETTINGS: dict[str, object] = {
    "sockets": SOCKETS,
    "seconds": SECONDS,
    "changes_per_s": measurements.RATE,
    "stalled_share": measurements.STALLED_SHARE,
    "query_instances": 2,
    "edges": 1,
    "runs": RUNS,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is chosen; only when that is everything, writes it down. Returns 1 when a measurement failed."""
    parser = ArgumentParser(prog="python -m bench.edge", description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the measurements, and measure nothing")
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, help="measure this; may be given again")
    parser.add_argument("--sockets", type=int, default=SOCKETS, help="the clients (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long each is listened to (%(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each measurement (%(default)s)")
    chosen = parser.parse_args(arguments)
    if chosen.list:
        print("\n".join(MEASUREMENTS))
        return 0
    names = [name for name in MEASUREMENTS if not chosen.only or name in chosen.only]
    metrics, failed = measure(names, chosen.sockets, chosen.seconds, chosen.runs)
    if metrics:
        print(table(metrics))
    whole = (len(names), chosen.sockets, chosen.seconds, chosen.runs) == (len(MEASUREMENTS), SOCKETS, SECONDS, RUNS)
    if whole and not failed:
        write("edge", metrics, SETTINGS)
    for name in failed:
        print(f"{name} could not be measured; see above", file=sys.stderr)
    return 1 if failed else 0


def measure(names: Sequence[str], sockets: int, seconds: float, runs: int) -> tuple[list[Metric], list[str]]:
    """Measures the named on one rig: see measure_each."""
    with edge_rig(sockets, seconds) as rig:

        def of(name: str) -> list[Metric]:
            return combine([MEASUREMENTS[name](rig) for _ in range(runs)])

        return measure_each({name: partial(of, name) for name in names})


if __name__ == "__main__":
    sys.exit(main())
