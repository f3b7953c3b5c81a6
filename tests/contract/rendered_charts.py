"""Renders the charts for the tests of them: one pod, executors, every part that is off by default."""

import os
import re
from typing import Any

import pytest
import yaml
from service_facts import ROOT, SETTINGS

from testkit.charts import CHARTS, STATECAST, helm_program, render
from testkit.kubernetes.deployment import EXECUTORS as EXECUTOR_VALUES
from testkit.kubernetes.deployment import EXECUTORS_NAMESPACE

WORKLOADS = ("StatefulSet", "Deployment", "Job", "CronJob")
SEND_EMAIL = ROOT / "docs" / "examples" / "weekly-email" / "send_email.py"
DOMAINS = ["orders", "bookings", "invoices", "odds", "positions"]

Manifest = dict[str, Any]

if helm_program() is None and not os.environ.get("CI"):
    pytest.skip("there is no Helm: `make charts` builds it, with Go", allow_module_level=True)

MANIFESTS = render(STATECAST)
EXECUTORS = render(CHARTS["stream-processor"], EXECUTOR_VALUES, namespace=EXECUTORS_NAMESPACE)
WITH_EXECUTORS = [*render(STATECAST, {"stream-processor.enabled": False}), *EXECUTORS]
WITH_POSTGRES = render(STATECAST, None, "--values", str(STATECAST / "postgres.yaml"))
WITH_ALL = render(
    STATECAST,
    {"jobs.enabled": True, "cdc-simulator.domains": DOMAINS, "global.podMonitors": True}
    | {f"{name}.kafkaSecret": f"kafka-{name}" for name in (*SETTINGS, "jobs", "topics")}
    | {"stream-processor.pipelinesConfigMap": "pipelines", "query-service.storesConfigMap": "stores"},
    *("--set-file", f"jobs.program={SEND_EMAIL}", "--values", str(STATECAST / "postgres.yaml")),
)


def key_of(manifest: Manifest) -> tuple[str, str]:
    return manifest["kind"], manifest["metadata"]["name"]


EVERY = [*MANIFESTS, *EXECUTORS, *(each for each in WITH_POSTGRES if key_of(each) not in map(key_of, MANIFESTS))]


def pod_of(workload: Manifest) -> Manifest:
    spec: Manifest = workload["spec"]
    template: Manifest = spec["jobTemplate"]["spec"]["template"] if "jobTemplate" in spec else spec["template"]
    return template


def container_of(workload: Manifest) -> Manifest:
    [container] = pod_of(workload)["spec"]["containers"]
    return dict(container)


def service_of(workload: Manifest) -> str:
    return re.sub("(?<=kafka-topics)-[0-9]+$", "", str(workload["metadata"]["name"]))


def values_of(workload: Manifest) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container_of(workload).get("env", []) if "value" in each}


def name_of(manifest: Manifest) -> str:
    namespace = manifest["metadata"].get("namespace", "")
    return f"{manifest['kind']} {namespace.removeprefix('statecast')} {manifest['metadata']['name']}".replace("  ", " ")


PODS = [each for each in EVERY if each["kind"] in WORKLOADS]
SERVERS = [each for each in PODS if each["kind"] not in ("Job", "CronJob")]
OURS = [each for each in SERVERS if service_of(each) in SETTINGS]


def every(kind: str, manifests: list[Manifest] = EVERY) -> list[Manifest]:
    return [each for each in manifests if each["kind"] == kind]


def selects(selector: Manifest, labels: dict[str, str]) -> bool:
    exact = all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
    return exact and all(labels.get(each["key"]) in each["values"] for each in selector.get("matchExpressions", []))


def labels_of_pods(manifests: list[Manifest]) -> list[dict[str, str]]:
    """Returns those of the workloads, and of the executors that the driver starts from a template."""
    labels = [pod_of(each)["metadata"]["labels"] for each in manifests if each["kind"] in WORKLOADS]
    files = [file for each in every("ConfigMap", manifests) for file in each["data"].items()]
    templates = [yaml.safe_load(text) for name, text in files if name.endswith(".yaml")]
    return labels + [each["metadata"]["labels"] for each in templates if each.get("kind") == "Pod"]
