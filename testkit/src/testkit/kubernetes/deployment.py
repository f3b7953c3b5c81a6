"""This project's charts on a cluster, installed as infra/charts/README.md says."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from testkit.charts import CHARTS, STATECAST, helm, render, value_flags
from testkit.kubernetes.cluster import Cluster, Object
from testkit.waiting import wait_until

INFRA = Path(__file__).resolve().parents[4] / "infra"
NAMESPACE = "statecast"
EXECUTORS_NAMESPACE = "statecast-executors"
READY_S = 600
POLL_S = 0.5
WORKLOADS = "statefulsets,deployments,jobs"
EXECUTORS = {"executors.enabled": True, "global.kafka.namespace": NAMESPACE}
"""The values of a processor on executors, which has a namespace of its own."""


class NamespaceTakenError(Exception):
    """The cluster has a Statecast already, which tests would change."""


@dataclass(frozen=True)
class GatewayFiles:
    """The files of the gateway: the secret that it shares with the edges, and its certificate and key as PEM."""

    secret: str
    certificate: str
    key: str


@dataclass
class Deployment:
    """Statecast on a cluster; `image_prefix` is where the cluster takes this project's images from."""

    cluster: Cluster
    image_prefix: str = ""
    ready_s: dict[str, float] = field(default_factory=dict)
    """After how many seconds each workload was ready, or its job done."""

    values: dict[str, Any] = field(default_factory=dict)
    """The values that differ from those of the chart."""

    revision: int = 0
    """How often the chart has been installed or upgraded, as Helm counts."""

    def begin(self) -> None:
        """Makes the namespace and the Service that clients come to. Raises NamespaceTakenError where there is one."""
        if self.cluster.run("get", "namespace", NAMESPACE, EXECUTORS_NAMESPACE, "--ignore-not-found", "-o", "name"):
            raise NamespaceTakenError(
                f"the cluster has the namespace {NAMESPACE} or {EXECUTORS_NAMESPACE}: remove both"
            )
        self.cluster.apply([restricted_namespace(NAMESPACE)])
        self.cluster.apply(each for each in self._rendered() if each["kind"] == "Service" and _is_of(each, "kong"))

    def address(self) -> str:
        """Returns the host that the load balancer gives to clients. Raises AssertionError when it gives none."""

        def given() -> str:
            balancer = self.cluster.get("service", "kong", NAMESPACE)["status"].get("loadBalancer") or {}
            return next((each.get("ip") or each["hostname"] for each in balancer.get("ingress") or []), "")

        wait_until(given, "the Service `kong` has no address: the cluster needs a load balancer", interval_s=POLL_S)
        return given()

    def up(self, gateway: GatewayFiles) -> None:
        """Installs everything else; returns when all is ready. Raises AssertionError with a report otherwise."""
        self.cluster.apply(made_by_hand(gateway))
        began = time.monotonic()
        self.configure()
        wait_until(partial(self._note_ready, began), partial(self.cluster.report, NAMESPACE), READY_S, POLL_S)

    def configure(self, values: Mapping[str, Any] | None = None, *flags: str) -> None:
        """Installs the chart of all, or upgrades it with further values. Does not wait for pods. Raises HelmError."""
        self.values |= values or {}
        self._install("statecast", STATECAST, NAMESPACE, self.values, "--take-ownership", *flags)
        self.revision += 1

    def install_executors(self) -> None:
        """Replaces the processor by one on executor pods, and does not wait for them. Raises HelmError."""
        self.configure({"stream-processor.enabled": False})
        self.cluster.wait_gone(NAMESPACE, "pod", "stream-processor-0")
        self.cluster.apply([restricted_namespace(EXECUTORS_NAMESPACE)])
        self._install("stream-processor", CHARTS["stream-processor"], EXECUTORS_NAMESPACE, EXECUTORS)

    def remove_executors(self) -> None:
        """Brings back the processor in one pod, and does not wait for it. Raises HelmError."""
        self.cluster.run("delete", "namespace", EXECUTORS_NAMESPACE, "--wait", timeout_s=READY_S)
        self.configure({"stream-processor.enabled": True})

    def _install(self, release: str, chart: Path, namespace: str, values: Mapping[str, Any], *flags: str) -> None:
        own = ["--kubeconfig", str(self.cluster.kubeconfig)] if self.cluster.kubeconfig else []
        options = ["--namespace", namespace, *value_flags({**values, "global.imagePrefix": self.image_prefix}), *flags]
        helm(*own, "upgrade", "--install", release, str(chart), *options)

    def _rendered(self) -> list[Object]:
        return render(STATECAST, {**self.values, "global.imagePrefix": self.image_prefix})

    @property
    def simulator_image(self) -> str:
        """The image of the pods that only tests start."""
        [image] = (
            each["spec"]["template"]["spec"]["containers"][0]["image"]
            for each in self._rendered()
            if each["kind"] == "StatefulSet" and _is_of(each, "cdc-simulator")
        )
        return str(image)

    def pods(self, name: str, namespace: str = NAMESPACE) -> list[Object]:
        """Returns the pods of a workload, also those that are ending."""
        return self.cluster.pods(namespace, f"app.kubernetes.io/name={name}")

    def roll(self, workload: str) -> float:
        """Replaces the pods of a workload, `kind/name`; the seconds until all are new and no old one is left."""
        began = time.monotonic()
        self.cluster.run("-n", NAMESPACE, "rollout", "restart", workload)
        self.wait_settled(workload)
        return time.monotonic() - began

    def scale(self, workload: str, replicas: int) -> None:
        """Returns when the workload has so many pods, all of them ready."""
        self.cluster.run("-n", NAMESPACE, "scale", workload, f"--replicas={replicas}")
        self.wait_settled(workload)

    def wait_settled(self, workload: str, namespace: str = NAMESPACE) -> None:
        """Returns when all pods of the workload are of its newest template and ready, and no other is left.

        Raises AssertionError that says how the pods are, when that takes too long.
        """
        self.cluster.wait_rolled(namespace, workload)
        kind, _, name = workload.partition("/")

        def is_settled() -> bool:
            deployed = self.cluster.get(kind, name, namespace)
            return is_ready(deployed) and len(self.pods(name, namespace)) == deployed["spec"]["replicas"]

        wait_until(is_settled, partial(self.cluster.report, namespace), READY_S, POLL_S)

    def down(self) -> None:
        """Removes both namespaces with all that is in them."""
        self.cluster.run(
            *("delete", "namespace", NAMESPACE, EXECUTORS_NAMESPACE, "--ignore-not-found", "--wait"), timeout_s=READY_S
        )

    def _note_ready(self, began: float) -> bool:
        workloads = self.cluster.objects(WORKLOADS, NAMESPACE)
        for each in workloads:
            if is_ready(each):
                self.ready_s.setdefault(each["metadata"]["name"], time.monotonic() - began)
        return all(map(is_ready, workloads))


def restricted_namespace(name: str) -> Object:
    """Returns a namespace that enforces the restricted pod security standard."""
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _is_of(each: Object, name: str) -> bool:
    return bool(each["metadata"]["name"] == name)


def is_ready(workload: Object) -> bool:
    """Returns whether all pods of a workload are ready, or a job has succeeded."""
    status = workload["status"]
    if workload["kind"] == "Job":
        return bool(status.get("succeeded"))
    is_seen = status.get("observedGeneration") == workload["metadata"]["generation"]
    return bool(is_seen and status.get("readyReplicas") == workload["spec"]["replicas"])


def made_by_hand(gateway: GatewayFiles) -> Iterator[Object]:
    """Yields the Secrets that the README has commands for."""
    yield _secret("kong", {"kong.yaml": (INFRA / "kong" / "kong.yaml").read_text(encoding="utf-8")})
    yield _secret("gateway", {"secret": gateway.secret})
    yield _secret("gateway-tls", {"tls.crt": gateway.certificate, "tls.key": gateway.key}, "kubernetes.io/tls")


def config_map(name: str, files: Mapping[str, str]) -> Object:
    """Returns a ConfigMap of Statecast's namespace."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": dict(files)}


def _secret(name: str, values: Mapping[str, str], kind: str = "Opaque") -> Object:
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata, "stringData": dict(values)}
