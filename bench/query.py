"""Measures the query-service alone, and writes bench/results/query.json: `make bench-query`."""

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from drivers.query_cluster import PARTITIONS, REPLICAS

from bench.query_failover import CALLERS, failover
from bench.query_freshness import RATE, freshness
from bench.query_reads import gets, scan
from bench.query_restore import BACKLOG, apply, restore
from bench.query_rig import QueryRig, query_rig
from bench.query_rows import PAYLOAD_BYTES
from bench.results import Metric, combine, measure_each, table, write

RUNS = 3
ROWS = 1_000_000
MEASUREMENTS: Mapping[str, Callable[[QueryRig], dict[str, float]]] = {
    "restore": restore,
    "apply": apply,
    "gets": gets,
    "scan": scan,
    "freshness": freshness,
    "failover": failover,
}
SETTINGS: dict[str, object] = {
    "rows": ROWS,
    "payload_bytes": PAYLOAD_BYTES,
    "partitions": PARTITIONS,
    "replicas": REPLICAS,
    "instances": "2; 1 for restore and apply",
    "apply_backlog": BACKLOG,
    "freshness_changes_per_s": RATE,
    "failover_callers": CALLERS,
    "runs": RUNS,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what is chosen; only when that is everything, writes it down. Returns 1 when a measurement failed."""
    parser = ArgumentParser(prog="python -m bench.query", description=__doc__)
    parser.add_argument("--only", action="append", choices=MEASUREMENTS, help="measure this; may be given again")
    parser.add_argument("--rows", type=int, default=ROWS, help="the keys of the store (%(default)s)")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each measurement (%(default)s)")
    chosen = parser.parse_args(arguments)
    names = [name for name in MEASUREMENTS if not chosen.only or name in chosen.only]
    metrics, failed = measure(names, chosen.rows, chosen.runs)
    if metrics:
        print(table(metrics))
    if not failed and (len(names), chosen.rows, chosen.runs) == (len(MEASUREMENTS), ROWS, RUNS):
        write("query", metrics, SETTINGS)
    for name in failed:
        print(f"{name} could not be measured; see above", file=sys.stderr)
    return 1 if failed else 0


def measure(names: Sequence[str], rows: int, runs: int) -> tuple[list[Metric], list[str]]:
    """Measures the named on one rig: see measure_each."""
    print(f"writing {rows} rows", file=sys.stderr)
    with query_rig(rows) as rig:

        def of(name: str) -> list[Metric]:
            return combine([MEASUREMENTS[name](rig) for _ in range(runs)])

        return measure_each({name: partial(of, name) for name in names})


if __name__ == "__main__":
    sys.exit(main())
