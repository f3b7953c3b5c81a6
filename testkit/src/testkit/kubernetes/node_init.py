"""The first process in the namespaces of the node: prepares them and runs the node's programs, until one of them ends.

    python -m testkit.kubernetes.node_init DIRECTORY PROGRAMS

DIRECTORY has the files of `NodeFiles`. When this process ends, however it ends, the kernel ends all others of the node,
and takes away its mounts, links and rules.
"""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from testkit.kubernetes.node_files import (
    API_PORT,
    HOST_ADDRESS,
    NODE,
    NODE_ADDRESS,
    SERVICE_NETWORK,
    NodeFiles,
)

LINK = "eth0"
POLL_S = 0.2
OWN_DIRECTORIES = ("/var/lib/kubelet", "/var/lib/cni", "/var/log")
"""The directories that the kubelet and the CNI plugins write to, in any configuration."""
SETTINGS_OF_THE_MACHINE = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
}
"""Settings that the kubelet would make for the whole machine: they are shown as made."""


class NodeInit:
    """Prepares and starts; see the module."""

    def __init__(self, files: NodeFiles, programs: Path) -> None:
        """Does nothing yet."""
        self._files = files
        self._programs = programs
        self._running: dict[int, tuple[str, subprocess.Popen[bytes]]] = {}

    def run(self) -> str:
        """Returns the name of the program that ended and its status."""
        self._mount()
        self._connect()
        self._start_control_plane()
        self._start_node()
        while True:
            # As the first process it also inherits the children of those that have ended.
            pid, status = os.wait()
            if pid in self._running:
                return f"{self._running[pid][0]} ended with {os.waitstatus_to_exitcode(status)}"

    def _mount(self) -> None:
        own = self._files.directory / "own"
        _run("mount", "--make-rshared", "/")
        _run("mount", "-t", "tmpfs", "tmpfs", "/run")
        Path("/run/lock").mkdir()
        for path in OWN_DIRECTORIES:
            (own / path[1:]).mkdir(parents=True)
            _run("mount", "--bind", str(own / path[1:]), path)
        for name, value in SETTINGS_OF_THE_MACHINE.items():
            shown = own / name
            shown.parent.mkdir(exist_ok=True)
            shown.write_text(value)
            _run("mount", "--bind", str(shown), f"/proc/sys/{name}")

    def _connect(self) -> None:
        socket.sethostname(NODE)
        _run("ip", "link", "set", "lo", "up")
        while subprocess.run(["ip", "link", "show", LINK], capture_output=True, check=False).returncode:
            time.sleep(POLL_S)  # the link comes from outside
        _run("ip", "address", "add", f"{NODE_ADDRESS}/24", "dev", LINK)
        _run("ip", "link", "set", LINK, "up")
        _run("ip", "route", "add", "default", "via", HOST_ADDRESS)
        Path("/proc/sys/net/ipv4/ip_forward").write_text("1")

    def _start_control_plane(self) -> None:
        files, directory = self._files, self._files.directory
        client, peer = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
        self._start(
            *("etcd", "--data-dir", str(directory / "etcd"), "--unsafe-no-fsync"),
            *("--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer),
        )
        token_key = str(files.pem("service-accounts-key"))
        self._start(
            *("kube-apiserver", f"--etcd-servers={client}", "--authorization-mode=RBAC", "--allow-privileged=true"),
            *(f"--secure-port={API_PORT}", f"--advertise-address={NODE_ADDRESS}"),
            *(f"--service-cluster-ip-range={SERVICE_NETWORK}", f"--client-ca-file={files.pem('ca')}"),
            *(f"--tls-cert-file={files.pem('api-server')}", f"--tls-private-key-file={files.pem('api-server-key')}"),
            *(f"--kubelet-client-certificate={files.pem('admin')}", f"--kubelet-client-key={files.pem('admin-key')}"),
            *(
                "--kubelet-preferred-address-types=InternalIP",
                "--service-account-issuer=https://kubernetes.default.svc",
            ),
            *(f"--service-account-key-file={token_key}", f"--service-account-signing-key-file={token_key}"),
        )
        kubectl = [str(self._programs / "kubectl"), "--kubeconfig", str(files.kubeconfig), "get", "--raw", "/readyz"]
        while subprocess.run(kubectl, capture_output=True, check=False).returncode:
            self._check()
            time.sleep(POLL_S)
        configured = f"--kubeconfig={files.kubeconfig}"
        self._start(
            *("kube-controller-manager", configured, "--leader-elect=false", "--allocate-node-cidrs=false"),
            *(f"--root-ca-file={files.pem('ca')}", f"--service-account-private-key-file={token_key}"),
            f"--cert-dir={directory / 'kube-controller-manager'}",
        )
        self._start("kube-scheduler", configured, "--leader-elect=false", f"--cert-dir={directory / 'kube-scheduler'}")

    def _start_node(self) -> None:
        files, directory = self._files, self._files.directory
        self._start("containerd", "--config", str(directory / "containerd.toml"))
        self._start(
            *("kubelet", f"--config={directory / 'kubelet.yaml'}", f"--kubeconfig={files.kubeconfig}"),
            *(f"--hostname-override={NODE}", f"--node-ip={NODE_ADDRESS}", f"--cert-dir={directory / 'kubelet'}"),
        )
        self._start("kube-proxy", f"--config={directory / 'kube-proxy.yaml'}")
        self._start(sys.executable, "-m", "testkit.kubernetes.policy_enforcer", str(files.kubeconfig))

    def _start(self, program: str, *arguments: str) -> None:
        name = Path(program).name if program != sys.executable else "policy-enforcer"
        path = f"{self._programs}:{os.environ['PATH']}"
        with (self._files.log / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [program, *arguments],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PATH": path},
            )
        self._running[process.pid] = name, process

    def _check(self) -> None:
        """Raises RuntimeError when a program has ended already."""
        for name, process in self._running.values():
            if process.poll() is not None:
                raise RuntimeError(f"{name} ended with {process.returncode}")


def _run(*command: str) -> None:
    subprocess.run(command, check=True)


def main(arguments: Sequence[str]) -> None:
    """Runs the node; ends with status 1 and the reason."""
    directory, programs = map(Path, arguments)
    sys.exit(NodeInit(NodeFiles(directory), programs).run())


if __name__ == "__main__":
    main(sys.argv[1:])
