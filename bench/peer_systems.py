"""The two systems under one name for each thing: instances of Kafka Streams, and instances of the query service."""

import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import grpc
import psutil
from confluent_kafka.admin import AdminClient

from bench.clusters import Cluster, Instance, run_only
from bench.peer_rows import version_of
from bench.query_rig import wait_until
from statecast.query.v1.query_service_pb2 import GetStateRequest, GetStateResponse, ListShardsRequest
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey
from testkit import processes
from testkit.ports import free_ports
from testkit.query_cluster import PARTITIONS, STORE

PEER = Path(__file__).parent / "peer"
TUNED = PEER / "tuned.properties"
JAVA_OPTIONS = ("-Xms256m", "-Xmx512m", "-XX:+UseG1GC")
DRAIN_S = 60.0
CALL_S = 10.0


class PeerInstance:
    """One JVM of the peer."""

    def __init__(self, name: str, directory: Path, properties: Mapping[str, str], files: Sequence[Path]) -> None:
        """`properties` go on top of those of the files. Nothing runs before `start`."""
        self.name = name
        self.address = f"127.0.0.1:{free_ports(1)[0]}"
        self._data = directory / name
        self._log_file = directory / f"{name}.log"
        own = {**properties, "application.server": self.address, "state.dir": str(self._data), "peer.instance": name}
        self._file = directory / f"{name}.properties"
        self._file.write_text("".join(f"{key}={value}\n" for key, value in own.items()))
        self._files = (*files, self._file)
        self._process: processes.Popen | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """Everything that has been printed since the first start."""
        return self._log_file.read_text() if self._log_file.exists() else ""

    def start(self) -> None:
        libraries = f"{PEER / 'target' / 'peer.jar'}:{PEER / 'target' / 'libs'}/*"
        command = ["java", *JAVA_OPTIONS, "-cp", libraries, "io.statecast.peer.Peer", *map(str, self._files)]
        self._process = processes.start(command, self._log_file)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def drain(self, timeout_s: float) -> None:
        """Sends SIGTERM, upon which it commits and leaves the group, and waits for its end."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout_s)

    def wipe(self) -> None:
        shutil.rmtree(self._data)


class PeerCluster:
    """The peer's instances over one topic: an application of Kafka Streams of its own."""

    def __init__(
        self, bootstrap: str, directory: Path, topic: str, topology: str = "table", files: Sequence[Path] = ()
    ) -> None:
        self.instances: dict[str, PeerInstance] = {}
        self.application = f"peer-{uuid4().hex[:8]}"
        self._bootstrap = bootstrap
        self._directory = directory
        self._properties = {"bootstrap.servers": bootstrap, "application.id": self.application}
        self._properties |= {"peer.topic": topic, "peer.topology": topology}
        self._files = [PEER / "streams.properties", *files]

    def add(self, name: str) -> PeerInstance:
        """Starts a new instance and returns it before it is ready."""
        self.instances[name] = PeerInstance(name, self._directory, self._properties, self._files)
        self.instances[name].start()
        return self.instances[name]

    def wait_left(self) -> None:
        """Waits until the group has no members: an instance that starts before waits for those that are gone."""
        admin = AdminClient({"bootstrap.servers": self._bootstrap})
        wait_until(lambda: not admin.describe_consumer_groups([self.application])[self.application].result().members)

    def close(self) -> None:
        """Ends every instance."""
        for instance in self.instances.values():
            if instance.running:
                instance.kill()


@contextmanager
def peer_cluster(
    bootstrap: str, directory: Path, topic: str, topology: str = "table", files: Sequence[Path] = ()
) -> Iterator[PeerCluster]:
    """Yields a peer's cluster without instances, which end with it; `files` of properties extend the usual ones."""
    directory.mkdir(parents=True)
    cluster = PeerCluster(bootstrap, directory, topic, topology, files)
    try:
        yield cluster
    finally:
        cluster.close()


class System:
    """One of the systems, by the name that its metrics begin with, and the actions of a measurement on it."""

    def __init__(self, name: str, cluster: Cluster[Instance]) -> None:
        self.name = name
        self.cluster = cluster

    def only(self, *names: str) -> list[Instance]:
        """Runs these instances and no others, and returns them when each partition is at all and each owns one."""
        instances = run_only(self.cluster, names, DRAIN_S)
        addresses = {instance.address for instance in instances}
        wait_until(lambda: all(runs(instance) and serves(instance.address, addresses) for instance in instances))
        return instances

    def cpu_s(self) -> float:
        """Returns the CPU time of all instances that run, with that of the processes that they have started."""
        times = [process.cpu_times() for process in self._processes()]
        return sum(float(each.user + each.system) for each in times)

    def rss_mb(self) -> float:
        return round(sum(process.memory_info().rss for process in self._processes()) / 1e6, 1)

    def _processes(self) -> list[psutil.Process]:
        running = [instance for instance in self.cluster.instances.values() if instance.running]
        return [process for instance in running for process in processes.family(instance.pid)]


def runs(instance: Instance) -> bool:
    """Returns True. Raises RuntimeError with the end of the log when the instance has ended."""
    if not instance.running:
        raise RuntimeError(f"{instance.name} has ended:\n{instance.log[-2000:]}")
    return True


def serves(address: str, addresses: set[str]) -> bool:
    """Returns whether all of these serve each partition and each owns one, as the instance at an address sees it."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        try:
            shards = stub.ListShards(ListShardsRequest(store=STORE), timeout=CALL_S).shards
        except grpc.RpcError:
            return False
    served = [{replica.address for replica in shard.replicas if replica.serving} for shard in shards]
    owners = {replica.address for shard in shards for replica in shard.replicas if replica.rank == 1}
    return served == [addresses] * PARTITIONS and owners == addresses


def get(stub: Any, key: str) -> GetStateResponse:
    """Makes one lookup. Raises grpc.RpcError."""
    response: GetStateResponse = stub.GetState(GetStateRequest(store=STORE, key=StateKey(group=key)), timeout=CALL_S)
    return response


def holds(stub: Any, key: str, version: int) -> bool:
    """Returns whether a lookup of the key answers with this version or a newer one; no answer is none."""
    try:
        return version_of(get(stub, key).state.payload) >= version
    except grpc.RpcError:
        return False


def wait_current(address: str, keys: Iterable[str], version: int) -> float:
    """Waits until each of the keys is answered with the version; returns when that was, by the monotonic clock."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        for key in keys:
            wait_until(lambda key=key: holds(stub, key, version))  # type: ignore[misc]
    return time.monotonic()
