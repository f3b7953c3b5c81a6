"""Starts and stops the node, from outside of its namespaces: `python -m testkit.kubernetes.node` runs one."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import yaml

from testkit import processes
from testkit.containers.engine import NoEngineError, find_engine
from testkit.kubernetes.cluster import Cluster, KubectlError, Object
from testkit.kubernetes.node_files import (
    BALANCER_ADDRESS,
    BALANCER_NETWORK,
    CGROUP,
    CNI_PROGRAMS,
    HOST_ADDRESS,
    NODE,
    NODE_ADDRESS,
    NodeFiles,
)
from testkit.kubernetes.node_images import import_images
from testkit.kubernetes.node_init import LINK, OWN_DIRECTORIES
from testkit.kubernetes.programs import BuildError, build_programs, programs_directory
from testkit.waiting import wait_until

HOST_LINK = "statecast-node"
NEEDED = ("containerd", "ctr", "ip", "mount", "nft", "runc", "unshare")
READY_S = 180
STOP_S = 60
CGROUPS = Path("/sys/fs/cgroup")
VOLUMES = 24
VOLUME_SIZE = "50Gi"
"""The size that is promised to claims of volumes; nothing enforces it."""
COREDNS = Path(__file__).with_name("coredns.yaml")


class NodeError(Exception):
    """The node cannot run on this machine; the text names the missing part."""


class NodeRunsError(Exception):
    """A node runs on this machine, or was not stopped."""


@dataclass
class Node:
    """A Kubernetes of one node; `directory` must not exist, and is gone again after `down`."""

    directory: Path
    programs: Path
    ready_s: dict[str, float] = field(default_factory=dict)
    """After how many seconds the API server answered and the node was ready."""
    _process: processes.Popen | None = field(default=None, init=False)
    _made: list[Path] = field(default_factory=list, init=False)
    """Directories of this machine that were not there before."""

    @property
    def files(self) -> NodeFiles:
        """Where everything of the node is."""
        return NodeFiles(self.directory)

    @property
    def cluster(self) -> Cluster:
        """The node's cluster, which obeys in everything."""
        return Cluster(self.files.kubeconfig, str(self.programs / "kubectl"))

    def up(self) -> None:
        """Returns when the node is ready for pods. Raises AssertionError with a log when that takes too long."""
        self._make_places()
        self.files.write()
        began = time.monotonic()
        process = self._process = processes.start(
            [
                *("unshare", "--mount", "--net", "--pid", "--uts", "--fork", "--kill-child", "--mount-proc"),
                *(sys.executable, "-m", "testkit.kubernetes.node_init", str(self.directory), str(self.programs)),
            ],
            self.files.log / "node.log",
        )
        self._connect(process.pid)
        for name, ready in {"API server": self._answers, "node": self._is_ready}.items():
            wait_until(ready, partial(self._not_ready, name), READY_S)
            self.ready_s[name] = time.monotonic() - began
        self._add_volumes()

    def start_names(self) -> None:
        """Starts the cluster's DNS once its image is imported; returns when it answers."""
        self.cluster.apply(yaml.safe_load_all(COREDNS.read_text(encoding="utf-8")))
        self.cluster.wait_rolled("kube-system", "deployment/coredns")

    def balance(self, namespace: str, service: str) -> str:
        """Acts as a cloud's load balancer: gives a Service an address that leads to the node, and returns it."""
        status = {"status": {"loadBalancer": {"ingress": [{"ip": BALANCER_ADDRESS}]}}}
        self.cluster.run(
            *("-n", namespace, "patch", "service", service, "--subresource=status", "--patch", json.dumps(status))
        )
        return BALANCER_ADDRESS

    def down(self) -> None:
        """Ends every process of the node and removes its files; its mounts and rules go with the processes."""
        if self._process:
            inside = processes.family(self._process.pid)
            self._process.kill()
            self._process.wait()
            psutil.wait_procs(inside, timeout=STOP_S)
        if _link_exists():
            # Connections that nobody ends any more keep the node's network for minutes; without its link it is alone.
            _ip("link", "delete", HOST_LINK)
        wait_until(_remove_cgroups, "cgroups of the node are still in use", STOP_S)
        shutil.rmtree(self.directory, ignore_errors=True)
        for path in self._made:
            path.rmdir()

    def log(self) -> str:
        """Returns the last lines of each of the node's programs."""
        return "\n".join(f"{file.name}:\n{processes.tail(file)}" for file in sorted(self.files.log.glob("*.log")))

    def _not_ready(self, name: str) -> str:
        return f"the {name} is not ready\n{self.log()}"

    def _make_places(self) -> None:
        for path in _cgroups():
            path.mkdir(exist_ok=True)
        self._made = [path for path in map(Path, OWN_DIRECTORIES) if not path.exists()]
        for path in self._made:
            path.mkdir()

    def _connect(self, pid: int) -> None:
        """Makes the link between this machine and the node, once the node has a network of its own."""

        def inside() -> psutil.Process | None:
            self._check()
            return next(iter(psutil.Process(pid).children()), None)

        def has_network() -> bool:
            process = inside()
            return process is not None and _network_of(process.pid) != _network_of(os.getpid())

        wait_until(has_network, "the node has no process yet", READY_S)
        process = inside()
        assert process is not None
        _ip("link", "add", HOST_LINK, "type", "veth", "peer", "name", LINK, "netns", str(process.pid))
        _ip("address", "add", f"{HOST_ADDRESS}/24", "dev", HOST_LINK)
        _ip("link", "set", HOST_LINK, "up")
        _ip("route", "add", BALANCER_NETWORK, "via", NODE_ADDRESS)

    def _check(self) -> None:
        """Raises AssertionError with the node's log when it has ended."""
        assert self._process is not None
        assert self._process.poll() is None, f"the node ended\n{self.log()}"

    def _answers(self) -> bool:
        self._check()
        try:
            return self.cluster.run("get", "--raw", "/readyz") == "ok"
        except KubectlError:
            return False

    def _is_ready(self) -> bool:
        self._check()
        try:
            status = self.cluster.get("node", NODE, "default")["status"]
        except KubectlError:
            return False
        return {"Ready": "True"} in ({each["type"]: each["status"]} for each in status.get("conditions", []))

    def _add_volumes(self) -> None:
        for number in range(VOLUMES):
            (self.directory / "volumes" / str(number)).mkdir(parents=True)
        self.cluster.apply(
            _volume(f"volume-{number}", self.directory / "volumes" / str(number)) for number in range(VOLUMES)
        )


def check_machine(directory: Path) -> None:
    """Raises NodeError when this machine cannot run a node, NodeRunsError when a node runs or left its directory."""
    if directory.exists() or _link_exists():
        raise NodeRunsError(f"a node runs, or was not stopped: remove {directory} and the link {HOST_LINK}")
    if os.geteuid() != 0:
        raise NodeError("a node of one's own needs root: run it with sudo, or name a cluster in KUBECONFIG")
    missing = [name for name in NEEDED if shutil.which(name) is None]
    missing += [str(CNI_PROGRAMS / name) for name in ("ptp", "host-local") if not (CNI_PROGRAMS / name).exists()]
    if missing:
        raise NodeError(f"a node of one's own needs {', '.join(missing)}: see README.md of testkit.kubernetes")


@contextmanager
def running_node(directory: Path, programs: Path) -> Iterator[Node]:
    """Yields a node that is ready for pods; nothing of it is left at the end of the block.

    Raises NodeError and NodeRunsError before anything is begun.
    """
    node = Node(directory, programs)
    check_machine(directory)
    try:
        node.up()
        yield node
    finally:
        node.down()


def _volume(name: str, directory: Path) -> Object:
    """Returns a volume on a directory of the node, for one claim of any access mode."""
    here = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [NODE]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": VOLUME_SIZE},
            "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
            "local": {"path": str(directory)},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [here]}},
        },
    }


def _cgroups() -> list[Path]:
    """Returns the node's cgroup in each hierarchy; there is one where the machine has cgroups of version 2 alone."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS / CGROUP]
    return [path / CGROUP for path in CGROUPS.iterdir() if (path / "cgroup.procs").exists() and not path.is_symlink()]


def _remove_cgroups() -> bool:
    """Removes the cgroups, and returns whether none is left: the kernel keeps one until its last process has ended."""
    for top in _cgroups():
        below = [Path(path) for path, _, _ in os.walk(top, topdown=False)]
        for path in below:
            try:
                path.rmdir()
            except OSError:
                return False
    return True


def _link_exists() -> bool:
    return Path("/sys/class/net", HOST_LINK).exists()


def _network_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def main() -> None:
    """Runs a node with the images of this project until Ctrl-C; ends with status 1 and the reason when it cannot."""
    try:
        engine, programs = find_engine(), programs_directory()
        check_machine(programs / "node")
        for _ in build_programs(programs):
            pass
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        with running_node(programs / "node", programs) as node:
            import_images(engine, node.files.containerd_socket, programs)
            node.start_names()
            print(f"export KUBECONFIG={node.files.kubeconfig}", flush=True)  # noqa: T201
            signal.pause()
    except (NodeError, NodeRunsError, NoEngineError, BuildError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        return


if __name__ == "__main__":
    main()
