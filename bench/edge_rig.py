"""One broker, two instances of the query service and one edge: everything that an edge needs, and nothing else."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import psutil
from drivers.own_broker import own_broker
from drivers.query_cluster import STORE, QueryCluster, query_cluster

from bench.edge_crowd import CrowdProcess, crowd
from bench.edge_rows import OrderWriter, key_of
from local_stack import child_process
from local_stack.ports import free_ports

NAMES = ("query-1", "query-2")
SECRET = "bench-gateway-secret"
EDGE_STORES = {
    "push-channels": "statecast.push.v1.ChannelRecord",
    "revoked-consumers": "statecast.push.v1.Revocation",
}
PATIENCE_S = 60.0
PAUSE_S = 0.1
UNLIMITED = 1_000_000
EDGE = {
    "min_interval_ms": 100,
    # What is measured is the edge, not its limits; and clients that hang must stay.
    "max_sockets": UNLIMITED,
    "sockets_per_s": UNLIMITED,
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
        self.keys = [key_of(number) for number in range(sockets)]
        self.writer = OrderWriter(cluster.bootstrap, cluster.topic)
        self.writer.write(self.keys)
        self._directory = directory
        self._stores = directory / "edge-stores.yaml"
        self._stores.write_text(
            f"stores: [{{name: {STORE}, message: statecast.orders.v1.Order, keeps: one, owner: staff}}]\n"
        )

    @contextmanager
    def edge(self, **settings: object) -> Iterator["EdgeProcess"]:
        """A new edge with its own crowd, which end with the block; `settings` go on top of those of the rig."""
        (port,) = free_ports(1)
        values: dict[str, object] = {
            "port": port,
            "gateway_secret": SECRET,
            "query_addresses": ",".join(instance.address for instance in self.cluster.instances.values()),
            "stores": self._stores,
            **EDGE,
            **settings,
        }
        edge = EdgeProcess(f"127.0.0.1:{port}", values, self._directory / "edge.log")
        try:
            edge.start()
            with crowd(edge.address, SECRET) as edge.clients:
                yield edge
        finally:
            edge.kill()

    def upstream(self) -> tuple[float, float]:
        """The keys and the calls that the query service has been asked for so far."""
        instances = self.cluster.instances.values()
        keys = sum(instance.metric("query_service_batch_keys_total") for instance in instances)
        return keys, sum(instance.metric("query_service_call_seconds_count") for instance in instances)

    def query_cpu_s(self) -> float:
        """The CPU time that the query service has used so far, over all its instances."""
        times = [psutil.Process(instance.pid).cpu_times() for instance in self.cluster.instances.values()]
        return float(sum(each.user + each.system for each in times))


class EdgeProcess:
    """An edge that keeps its address from one start to the next, and its clients."""

    clients: CrowdProcess

    def __init__(self, address: str, settings: Mapping[str, object], log: Path) -> None:
        self.address = address
        self._environment = {f"WS_EDGE_{name.upper()}": str(value) for name, value in settings.items()}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process, and returns when it is ready."""
        self._process = child_process.start([sys.executable, "-m", "ws_edge", "run"], self._log, self._environment)
        wait_until(lambda: _answers(f"http://{self.address}/readyz"))

    def kill(self) -> None:
        """Ends the process at once, as `kill -9` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def rss_kb(self) -> float:
        """The memory that it has in use, in KB."""
        assert self._process is not None
        return psutil.Process(self._process.pid).memory_info().rss / 1e3

    def metric(self, name: str) -> float:
        """The sum of a metric over its labels."""
        with urlopen(f"http://{self.address}/metrics", timeout=30) as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith((f"{name} ", f"{name}{{")))


def wait_until(condition: Callable[[], bool]) -> None:
    """Returns when the condition holds. Raises TimeoutError when that takes too long."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"what was waited for has not come within {PATIENCE_S:g} s")
        time.sleep(PAUSE_S)


@contextmanager
def edge_rig(sockets: int, seconds: float) -> Iterator[EdgeRig]:
    """A rig on a broker of its own; all of it ends with the block."""
    with tempfile.TemporaryDirectory(prefix="statecast-bench-") as temporary:
        directory = Path(temporary)
        with (
            own_broker(directory) as broker,
            query_cluster(broker.bootstrap, directory / "query", session_timeout_ms=6000) as cluster,
        ):
            for name, message in EDGE_STORES.items():
                cluster.add_plain_store(name, message)
            cluster.start(*NAMES)
            yield EdgeRig(cluster, directory, sockets, seconds)


def _answers(url: str) -> bool:
    try:
        with urlopen(url, timeout=5):
            return True
    except URLError:
        return False
