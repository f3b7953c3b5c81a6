"""The interface of a system's instances that every measurement uses."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar


class Instance(Protocol):
    """One process of a system, which keeps its address and its directory from one start to the next."""

    name: str
    address: str

    @property
    def pid(self) -> int: ...
    @property
    def running(self) -> bool: ...
    @property
    def log(self) -> str: ...
    def start(self) -> None: ...
    def kill(self) -> None: ...
    def drain(self, timeout_s: float) -> None: ...
    def wipe(self) -> None: ...


AnyInstance = TypeVar("AnyInstance", bound=Instance, covariant=True)


class Cluster(Protocol[AnyInstance]):
    """Instances by name; `add` starts a new one and does not wait."""

    @property
    def instances(self) -> Mapping[str, AnyInstance]: ...
    def add(self, name: str) -> AnyInstance: ...


def run_only(cluster: Cluster[AnyInstance], names: Sequence[str], drain_s: float) -> list[AnyInstance]:
    """Runs these instances and no others, and returns them in this order; those that it starts may not be ready yet."""
    for name, instance in cluster.instances.items():
        if name not in names and instance.running:
            instance.drain(drain_s)
    for name in names:
        if name not in cluster.instances:
            cluster.add(name)
        elif not cluster.instances[name].running:
            cluster.instances[name].start()
    return [cluster.instances[name] for name in names]
