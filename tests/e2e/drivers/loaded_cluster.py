"""A cluster of three under steady load, and the invariants at the end of every story about it."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from drivers.query_load import LoadProcess, QueryLoad
from drivers.replica_rows import PARTITIONS
from testkit.query_cluster import QueryCluster, QueryInstance, query_cluster
from testkit.waiting import eventually

CHANGES_PER_S = 1000
READS_PER_S = 500
"""At each instance. A machine that holds less reads as fast as it can; no assertion depends on it."""
KEYS = 3000
SHOWN = 20
NAMES = ("query-1", "query-2", "query-3")

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LoadedCluster:
    """A cluster, and the load on it."""

    cluster: QueryCluster
    load: LoadProcess

    def instance(self, name: str) -> QueryInstance:
        """Returns one of the instances."""
        return self.cluster.instances[name]

    def read_through(self, name: str) -> None:
        """Adds a reader that prefers this instance, and knows the others that there are now."""
        addresses = {each.name: each.address for each in self.cluster.instances.values()}
        self.load.ask(QueryLoad.start_reading, name, addresses, READS_PER_S)

    def until_steady(self) -> None:
        """Waits until every reader has had another hundred answers from its own instance."""
        self.load.ask(QueryLoad.until_steady)

    def until_back(self, name: str) -> None:
        """Waits until an instance is ready and its reader reads there again."""
        eventually(self.instance(name).assert_ready, timeout_s=60)
        self.until_steady()

    def until_written(self, count: int) -> None:
        """Waits until so many more records have been acknowledged."""
        before = self.load.ask(QueryLoad.written)

        def written() -> None:
            assert self.load.ask(QueryLoad.written) >= before + count

        eventually(written, timeout_s=60)

    def until_current(self) -> None:
        """Waits until no instance lags any more."""
        for instance in self.cluster.instances.values():
            eventually(instance.assert_current, timeout_s=60)

    def until_members(self, count: int) -> None:
        """Waits until every instance sees this many in the group."""
        for instance in self.cluster.instances.values():
            eventually(partial(instance.assert_members, count), timeout_s=60)

    def assert_all_answered(self, *disturbed: str) -> None:
        """Holds that no read has failed, and that none but the `disturbed` instances left a call unanswered.

        A caller of an instance that dies gets no answer to the calls that were under way, and puts them to another.
        """
        unanswered = [each for each in self.load.ask(QueryLoad.take_unanswered) if each.instance not in disturbed]
        failures = self.load.ask(QueryLoad.failures)

        assert not failures, _shown(failures)
        assert not unanswered, _shown(unanswered)


@contextmanager
def loaded_cluster(bootstrap: str, directory: Path) -> Iterator[LoadedCluster]:
    """Tells a story in its block. Afterwards: no failed read, no broken promise, and all replicas the same."""
    keys = [f"state-{number:06d}" for number in range(KEYS)]
    with (
        query_cluster(bootstrap, directory, partitions=PARTITIONS) as cluster,
        closing(LoadProcess(bootstrap, cluster.topic, keys)) as load,
    ):
        loaded = LoadedCluster(cluster, load)
        load.ask(QueryLoad.fill)
        cluster.start(*NAMES)
        load.ask(QueryLoad.start_writing, CHANGES_PER_S)
        for name in NAMES:
            loaded.read_through(name)
        loaded.until_steady()
        yield loaded
        loaded.until_steady()
        load.ask(QueryLoad.stop_writing)
        _log.info("answered: %s", load.ask(QueryLoad.rates))

        failures = load.ask(QueryLoad.failures)
        assert not failures, _shown(failures)
        load.ask(
            QueryLoad.assert_replicas_equal,
            {each.name: each.shard_address for each in cluster.instances.values()},
        )


def _shown(items: Sequence[object]) -> str:
    return "\n".join([f"{len(items)} of these:", *map(str, items[:SHOWN])])
