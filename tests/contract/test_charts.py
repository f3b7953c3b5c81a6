"""Charts render valid manifests, describe each value, and have the version of their part."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # the package ships no types
import pytest
import yaml
from rendered_charts import (
    EXECUTORS,
    MANIFESTS,
    SEND_EMAIL,
    WITH_ALL,
    WITH_POSTGRES,
    Manifest,
    container_of,
    every,
    name_of,
)
from service_facts import ROOT

import query_service.metrics
import ws_edge.metrics
from testkit.chart_schemas import SCHEMA, written
from testkit.charts import CHARTS, STATECAST, helm, render

ALL = {**CHARTS, "statecast": STATECAST}
PARTS = {**{name: chart.parent for name, chart in CHARTS.items()}, "statecast": ROOT / "infra"}
LIBRARY = ROOT / "infra" / "charts" / "library"
LIBRARY_CHART = "statecast-library"
KUBERNETES = ("1.32", "1.37")
"""The oldest and the newest Kubernetes that the charts are held to."""
WITHOUT_SCHEMA = "PodMonitor"
"""A kind of the Prometheus operator."""
SCALED = [
    each
    for name in ("ws-edge", "query-service")
    for each in render(CHARTS[name], {"autoscaling.enabled": True, "autoscaling.max": 4})
]
CONTAINED = {*CHARTS, LIBRARY_CHART}
"""Values that are those of another chart."""

JOB = ("--set-file", f"program={SEND_EMAIL}")


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize(
    "objects",
    [MANIFESTS, EXECUTORS, WITH_POSTGRES, WITH_ALL, SCALED],
    ids=["defaults", "executors", "postgres", "all", "scaled"],
)
def test_kubernetes_knows_every_field(objects: list[Manifest], version: str) -> None:
    assert objects
    for each in objects:
        if each["kind"] != WITHOUT_SCHEMA:
            kubernetes_validate.validate(each, version, strict=True)


@pytest.mark.parametrize("name", ALL)
def test_helm_finds_nothing_to_say_of_a_chart(name: str) -> None:
    flags = JOB if name == "jobs" else ()
    printed = helm("lint", "--strict", "--quiet", "--kube-version", KUBERNETES[-1], str(ALL[name]), *flags)

    assert "WARNING" not in printed
    assert "ERROR" not in printed


@pytest.mark.parametrize("name", ALL)
def test_the_schema_is_that_of_the_values(name: str) -> None:
    assert (ALL[name] / SCHEMA).read_text() == written(ALL[name]), "run `make reference`"


@pytest.mark.parametrize("name", ALL)
def test_every_value_says_what_it_means(name: str) -> None:
    described = json.loads((ALL[name] / SCHEMA).read_text())["properties"]

    assert not sorted(undescribed({key: value for key, value in described.items() if key not in CONTAINED}))


def undescribed(properties: Mapping[str, Any]) -> Iterator[str]:
    for name, value in properties.items():
        if "description" not in value:
            yield name
        yield from (f"{name}.{each}" for each in undescribed(value.get("properties", {})))


def test_an_edge_with_a_certificate_needs_no_plain_text() -> None:
    env = {"WS_EDGE_TLS_CERTIFICATE": "/etc/tls/tls.crt", "WS_EDGE_TLS_KEY": "/etc/tls/tls.key"}
    [edge] = every("StatefulSet", render(CHARTS["ws-edge"], {"allowPlaintext": False, "env": env}))
    names = {each["name"] for each in container_of(edge)["env"]}

    assert env.keys() <= names
    assert "WS_EDGE_ALLOW_PLAINTEXT" not in names


def test_a_mount_of_any_name_is_another_volume_than_those_of_the_chart() -> None:
    values = {"mounts": [{"name": "tmp", "path": "/etc/tls", "secret": "tls"}]}
    [edge] = every("StatefulSet", render(CHARTS["ws-edge"], values))
    names = [each["name"] for each in edge["spec"]["template"]["spec"]["volumes"]]

    assert len(set(names)) == len(names) == 2
    assert {each["name"] for each in container_of(edge)["volumeMounts"]} == set(names)


@pytest.mark.parametrize("name", ALL)
def test_a_chart_has_the_version_of_its_part(name: str) -> None:
    version = tomllib.loads((PARTS[name] / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((ALL[name] / "Chart.yaml").read_text())

    assert (chart["version"], str(chart["appVersion"])) == (version, version)


def test_all_charts_share_one_library() -> None:
    assert {(each / "charts" / LIBRARY_CHART).resolve() for each in ALL.values()} == {LIBRARY}


@pytest.mark.parametrize("name", ALL)
def test_a_chart_is_packed_with_all_that_it_needs(name: str, tmp_path: Path) -> None:
    helm("package", str(ALL[name]), "--destination", str(tmp_path))
    [packed] = tmp_path.iterdir()
    flags = JOB if name == "jobs" else ()

    assert render(packed, None, *flags) == render(ALL[name], None, *flags)


@pytest.mark.parametrize(
    ("name", "metric", "target"),
    [("ws-edge", ws_edge.metrics, "8000"), ("query-service", query_service.metrics, "5")],
)
def test_an_autoscaler_says_how_many_there_are_by_a_metric_that_pods_have(name: str, metric: Any, target: str) -> None:
    [scaler] = [each for each in every("HorizontalPodAutoscaler", SCALED) if each["metadata"]["name"] == name]
    [workload] = [each for each in every("StatefulSet", SCALED) if each["metadata"]["name"] == name]
    [wanted] = scaler["spec"]["metrics"]

    assert "replicas" not in workload["spec"]
    assert scaler["spec"]["scaleTargetRef"]["name"] == name
    assert f'"{wanted["pods"]["metric"]["name"]}"' in Path(metric.__file__).read_text()
    assert wanted["pods"]["target"] == {"type": "AverageValue", "averageValue": target}
    assert (scaler["spec"]["minReplicas"], scaler["spec"]["maxReplicas"]) == (2, 4)


def test_scrapers_find_a_port_of_every_pod_that_has_metrics() -> None:
    monitors = every("PodMonitor", WITH_ALL)
    ports = {
        pod["metadata"]["name"]: {port["name"] for port in pod["spec"]["template"]["spec"]["containers"][0]["ports"]}
        for pod in [*every("StatefulSet", WITH_ALL), *every("Deployment", WITH_ALL)]
        if "ports" in pod["spec"]["template"]["spec"]["containers"][0]
    }

    assert {each["metadata"]["name"] for each in monitors} == ports.keys() - {"kafka", "postgres"}
    for each in monitors:
        [endpoint] = each["spec"]["podMetricsEndpoints"]
        assert endpoint["port"] in ports[each["metadata"]["name"]]
    assert not every("PodMonitor", MANIFESTS)


@pytest.mark.parametrize("budget", every("PodDisruptionBudget", MANIFESTS), ids=name_of)
def test_one_pod_of_each_kind_of_which_there_are_several_may_be_away(budget: Manifest) -> None:
    assert budget["spec"]["maxUnavailable"] == 1


def test_an_instance_knows_the_zone_of_its_node() -> None:
    [instance] = [each for each in every("StatefulSet", MANIFESTS) if each["metadata"]["name"] == "query-service"]
    [container] = instance["spec"]["template"]["spec"]["containers"]
    [zone] = [each["valueFrom"] for each in container["env"] if each["name"] == "QUERY_SERVICE_ZONE"]

    assert zone == {"fieldRef": {"fieldPath": "metadata.labels['topology.kubernetes.io/zone']"}}


def test_a_processor_on_executors_looks_for_the_broker_where_it_is() -> None:
    [driver] = every("StatefulSet", EXECUTORS)
    policies = yaml.safe_dump(every("NetworkPolicy", EXECUTORS))

    assert driver["spec"]["template"]["spec"]["dnsConfig"] == {"searches": ["statecast.svc.cluster.local"]}
    assert policies.count("kubernetes.io/metadata.name: statecast\n") == 2


@pytest.mark.parametrize("name", ["query-service", "ws-edge", "kong"])
def test_pods_of_one_kind_are_spread_over_zones_and_nodes(name: str) -> None:
    workloads = [*every("StatefulSet", MANIFESTS), *every("Deployment", MANIFESTS)]
    [pod] = [each["spec"]["template"]["spec"] for each in workloads if each["metadata"]["name"] == name]

    assert {each["topologyKey"] for each in pod["topologySpreadConstraints"]} == {
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
    }
    assert all(
        each["labelSelector"]["matchLabels"] == {"app.kubernetes.io/name": name}
        for each in pod["topologySpreadConstraints"]
    )
