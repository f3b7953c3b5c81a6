"""One broker, two instances of the query service and one edge: everything that an edge needs, and nothing else."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from testkit.broker import running_broker
from testkit.edge_clients import CrowdProcess, crowd
from testkit.keyed_topic_writers import OrderWriter, order_key
from testkit.ports import free_port
from testkit.query_cluster import STORE, QueryCluster, query_cluster
from testkit.service_process import ServiceProcess
from ws_edge.channels import EDGE_STORES

NAMES = ("query-1", "query-2")
SECRET = "bench-gateway-secret"
EDGE = {
    "min_interval_ms": 100,
    # The edge is measured, not its limits; and clients that hang must stay.
    "max_sockets": 1_000_000,
    "sockets_per_s": 1_000_000,
    "stall_timeout_s": 3600,
}


class EdgeRig:
    """The rig of a measurement: an edge that has just been started, its clients, and a writer of changes."""

    def __init__(self, cluster: QueryCluster, directory: Path, sockets: int, seconds: float) -> None:
        """`sockets` are the clients of a whole measurement, which listens for `seconds`."""
        self.cluster = cluster
        self.sockets = sockets
        self.seconds = seconds
        self.store = STORE
        self.keys = [order_key(number) for number in range(sockets)]
        self.writer = OrderWriter(cluster.bootstrap, cluster.topic)
        self.writer.write(self.keys)
        self._directory = directory

    @contextmanager
    def edge(self, **settings: object) -> Iterator["EdgeProcess"]:
        """Yields a new edge with its own crowd, which end with the block; `settings` go on top of those of the rig."""
        queries = ",".join(instance.address for instance in self.cluster.instances.values())
        own = {"gateway_secret": SECRET, "query_addresses": queries}
        with EdgeProcess({**own, **EDGE, **settings}, self._directory / "edge.log") as edge:
            edge.start()
            edge.wait_ready()
            with crowd(edge.address, SECRET) as edge.clients:
                yield edge

    @contextmanager
    def watching_edge(
        self, sockets: int, keys: Sequence[str], interval_ms: int, each: int = 1
    ) -> Iterator["EdgeProcess"]:
        """Yields a new edge with so many sockets, which watch `each` of the keys, in turn."""
        with self.edge() as edge:
            edge.clients.ask("open", sockets)
            edge.clients.ask("watch", self.store, keys, interval_ms, 0, each)
            yield edge

    def upstream(self, **labels: str) -> tuple[float, float]:
        """Returns the keys and calls, of those with the labels, that the query service has been asked for so far."""
        instances = self.cluster.instances.values()
        keys = sum(instance.metric("query_service_batch_keys_total") for instance in instances)
        return keys, sum(instance.metric("query_service_call_seconds_count", **labels) for instance in instances)

    def query_cpu_s(self) -> float:
        """Returns the CPU time that the query service has used so far, over all its instances."""
        return sum(instance.cpu_s for instance in self.cluster.instances.values())


class EdgeProcess(ServiceProcess):
    """An edge that keeps its address from one start to the next, and its clients."""

    clients: CrowdProcess

    def __init__(self, settings: Mapping[str, object], log_file: Path) -> None:
        port = free_port()
        super().__init__("ws_edge", {"port": port, **settings}, log_file, port)
        self.address = f"127.0.0.1:{port}"


@contextmanager
def edge_rig(sockets: int, seconds: float) -> Iterator[EdgeRig]:
    """Yields a rig on a broker of its own; all of its processes end with the block."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        with (
            running_broker(directory / "broker") as broker,
            query_cluster(broker.bootstrap, directory / "query", session_timeout_ms=6000) as cluster,
        ):
            for name, store in EDGE_STORES.items():
                cluster.add_store(name, store.kind, format="plain")
            cluster.start(*NAMES)
            yield EdgeRig(cluster, directory, sockets, seconds)
