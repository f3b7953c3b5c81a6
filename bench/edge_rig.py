"""One broker, two instances of the query service and one edge: everything that an edge needs, and nothing else."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from testkit.broker import running_broker
from testkit.edge_clients import CrowdProcess, crowd
from testkit.keyed_topic_writers import OrderWriter, order_key
from testkit.ports import free_port
from testkit.query_cluster import STORE, QueryCluster, query_cluster
from testkit.service_process import ServiceProcess

NAMES = ("query-1", "query-2")
SECRET = "bench-gateway-secret"
EDGE_STORES = {
    "push-channels": "statecast.push.v1.ChannelRecord",
    "revoked-consumers": "statecast.push.v1.Revocation",
}
EDGE = {
    "min_interval_ms": 100,
    # What is measured is the edge, not its limits; and clients that hang must stay.
    "max_sockets": 1_000_000,
    "sockets_per_s": 1_000_000,
    "slow_start_s": 0,
    "stall_timeout_s": 3600,
    "max_outbox_bytes": 8 << 20,
}


class EdgeRig:
    """What a measurement needs: an edge that has just been started, its clients, and a writer of changes."""

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
        self._stores = directory / "edge-stores.yaml"
        store = f"{{name: {STORE}, message: statecast.orders.v1.Order, keeps: one, owner: staff}}"
        self._stores.write_text(f"stores: [{store}]\n")

    @contextmanager
    def edge(self, **settings: object) -> Iterator["EdgeProcess"]:
        """A new edge with its own crowd, which end with the block; `settings` go on top of those of the rig."""
        port = free_port()
        values: dict[str, object] = {
            "gateway_secret": SECRET,
            "query_addresses": ",".join(instance.address for instance in self.cluster.instances.values()),
            "stores": self._stores,
            **EDGE,
            **settings,
        }
        edge = EdgeProcess(port, values, self._directory / "edge.log")
        try:
            edge.start_ready()
            with crowd(edge.address, SECRET) as edge.clients:
                yield edge
        finally:
            edge.close()

    def upstream(self) -> tuple[float, float]:
        """The keys and the calls that the query service has been asked for so far."""
        instances = self.cluster.instances.values()
        keys = sum(instance.metric("query_service_batch_keys_total") for instance in instances)
        return keys, sum(instance.metric("query_service_call_seconds_count") for instance in instances)

    def query_cpu_s(self) -> float:
        """The CPU time that the query service has used so far, over all its instances."""
        return sum(instance.cpu_s for instance in self.cluster.instances.values())


class EdgeProcess(ServiceProcess):
    """An edge that keeps its address from one start to the next, and its clients."""

    clients: CrowdProcess

    def __init__(self, port: int, settings: Mapping[str, object], log_file: Path) -> None:
        super().__init__("ws_edge", {"port": port, **settings}, log_file, port)
        self.address = f"127.0.0.1:{port}"

    def start_ready(self) -> None:
        """Starts the process, and returns when it is ready."""
        self.start()
        self.wait_ready()

    @property
    def rss_kb(self) -> float:
        """The memory that it has in use, in KB."""
        return self.rss_bytes / 1e3


@contextmanager
def edge_rig(sockets: int, seconds: float) -> Iterator[EdgeRig]:
    """A rig on a broker of its own; all of it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        with (
            running_broker(directory / "broker") as broker,
            query_cluster(broker.bootstrap, directory / "query", session_timeout_ms=6000) as cluster,
        ):
            for name, message in EDGE_STORES.items():
                cluster.add_plain_store(name, message)
            cluster.start(*NAMES)
            yield EdgeRig(cluster, directory, sockets, seconds)
