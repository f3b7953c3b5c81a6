"""Reads the Kubernetes manifests for the tests of them: one pod, executors, and PostgreSQL as the source."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic_settings import BaseSettings

import cdc_simulator.settings
import query_service.settings
import stream_processor.settings
import ws_edge.settings

ROOT = Path(__file__).resolve().parents[2]
K8S = ROOT / "infra" / "k8s"
COMPOSE: dict[str, Any] = {
    name: container
    for name, container in yaml.safe_load((ROOT / "infra" / "compose.yaml").read_text())["services"].items()
    if "profiles" not in container
}
"""What compose.yaml starts without a profile."""
POSTGRES_SOURCE: dict[str, Any] = yaml.safe_load((ROOT / "infra" / "compose.postgres.yaml").read_text())["services"]
"""What differs from compose.yaml, and what comes beside it, with PostgreSQL as the source."""
SETTINGS: dict[str, type[BaseSettings]] = {
    "cdc-simulator": cdc_simulator.settings.Settings,
    "stream-processor": stream_processor.settings.Settings,
    "query-service": query_service.settings.Settings,
    "ws-edge": ws_edge.settings.Settings,
}
WORKLOADS = ("StatefulSet", "Deployment", "Job")

Manifest = dict[str, Any]


def read(files: Iterator[Path]) -> list[Manifest]:
    return [each for file in sorted(files) for each in yaml.safe_load_all(file.read_text())]


MANIFESTS = read(K8S.glob("*.yaml"))
EXECUTORS = read((K8S / "executors").glob("*.yaml"))
ONE_POD = K8S / "stream-processor.yaml"
WITH_EXECUTORS = [*read(path for path in K8S.glob("*.yaml") if path != ONE_POD), *EXECUTORS]
WITH_POSTGRES = [*MANIFESTS, *read((K8S / "postgres").glob("*.yaml"))]
EVERY = [*MANIFESTS, *EXECUTORS, *WITH_POSTGRES[len(MANIFESTS) :]]


def pod_of(workload: Manifest) -> Manifest:
    spec: Manifest = workload["spec"]["template"]
    return spec


def container_of(workload: Manifest) -> Manifest:
    [container] = pod_of(workload)["spec"]["containers"]
    return dict(container)


def service_of(workload: Manifest) -> str:
    return str(workload["metadata"]["name"])


def values_of(workload: Manifest) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container_of(workload).get("env", []) if "value" in each}


def variables_of_image(service: str) -> dict[str, str]:
    """What the Dockerfile of a service sets for the service's settings."""
    image = (ROOT / "services" / service / "Dockerfile").read_text()
    prefix = service.upper().replace("-", "_")
    return {name: value.strip('"') for name, value in re.findall(rf"({prefix}_\w+)=(\S+)", image)}


def ports_of(service: str) -> set[str]:
    """Those on which a service listens by its own defaults."""
    fields = SETTINGS[service].model_fields.items()
    return {str(field.default) for name, field in fields if name == "port" or name.endswith("_port")}


def name_of(manifest: Manifest) -> str:
    namespace = manifest["metadata"].get("namespace", "")
    return f"{manifest['kind']} {namespace.removeprefix('statecast')} {manifest['metadata']['name']}".replace("  ", " ")


PODS = [each for each in EVERY if each["kind"] in WORKLOADS]
SERVERS = [each for each in PODS if each["kind"] != "Job"]
OURS = [each for each in SERVERS if service_of(each) in SETTINGS]


def in_compose(service: str) -> Manifest:
    """The container of that name, or the first of its instances."""
    names = {"kafka-topics": "topics"}
    containers = {**POSTGRES_SOURCE, **COMPOSE}
    container: Manifest = containers.get(names.get(service, service)) or containers[f"{service}-1"]
    return container


def every(kind: str, manifests: list[Manifest] = EVERY) -> list[Manifest]:
    return [each for each in manifests if each["kind"] == kind]


def selects(selector: Manifest, labels: dict[str, str]) -> bool:
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return exact and all(labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", []))


def labels_of_pods(manifests: list[Manifest]) -> list[dict[str, str]]:
    """Those of the workloads, and of the executors that the driver starts from a template."""
    labels = [pod_of(each)["metadata"]["labels"] for each in manifests if each["kind"] in WORKLOADS]
    files = [file for each in every("ConfigMap", manifests) for file in each["data"].items()]
    templates = [yaml.safe_load(text) for name, text in files if name.endswith(".yaml")]
    return labels + [each["metadata"]["labels"] for each in templates]
