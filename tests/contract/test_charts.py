"""Charts render valid manifests, refuse unknown values, and have the version of their part."""

import json
import tomllib
from collections.abc import Mapping
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
from testkit.charts import CHARTS, STATECAST, HelmError, helm, render

ALL = {**CHARTS, "statecast": STATECAST}
PARTS = {**{name: chart.parent for name, chart in CHARTS.items()}, "statecast": ROOT / "infra"}
LIBRARY = ROOT / "infra" / "charts" / "library"
KUBERNETES = ("1.32", "1.37")
"""The oldest and the newest Kubernetes that the charts are held to."""
WITHOUT_SCHEMA = "PodMonitor"
"""A kind of the Prometheus operator."""
SCALED = [
    each
    for name in ("ws-edge", "query-service")
    for each in render(CHARTS[name], {"autoscaling.enabled": True, "autoscaling.max": 4})
]
DEFAULT_VARIABLE = "STREAM_PROCESSOR_JAVA_OPTIONS"
"""The one variable of a chart that gives way to a value of `env`."""

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
    own = yaml.safe_load((ALL[name] / "values.yaml").read_text()).keys() - CHARTS.keys()

    for value in own - {"resources", "storage"}:
        assert described[value].get("description"), value


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"ws-edge.replica": 3}, "'replica' not allowed"),
        ({"ws-edge.replicas": 0}, "/replicas"),
        ({"ws-edge.replicas": "two"}, "/replicas"),
        ({"ws-edge.mounts": [{"name": "tls", "path": "etc", "secret": "tls"}]}, "/mounts/0/path"),
        ({"ws-edge.mounts": [{"name": "tls", "path": "/etc"}]}, "/mounts/0"),
        ({"ws-edge.env": {"WS_EDGE_MAX_SOCKETS": 5}}, "/env/WS_EDGE_MAX_SOCKETS"),
        ({"ws-edge.env": {"WS_EDGE_INSTANCE": "one"}}, "env: WS_EDGE_INSTANCE is set by other values of the chart"),
        ({"ws-edge.query.addresses": "query-service"}, "/query/addresses"),
        ({"ws-edge.query.port": ""}, "/query/port"),
        ({"ws-edge.image": "ws edge:1"}, "/image"),
        ({"query-service.storage.size": "20GB"}, "/storage/size"),
        ({"query-service.storage.size": "0Gi"}, "/storage/size"),
        ({"cdc-simulator.rate": 0}, "/rate"),
        ({"cdc-simulator.domains": []}, "/domains"),
        ({"stream-processor.sourceFormat": "avro"}, "/sourceFormat"),
        ({"global.kafka.bootstrap": ""}, "/global/kafka/bootstrap"),
        ({"global.kafka.bootstrap": "one:9092,two"}, "/global/kafka/bootstrap"),
        ({"global.imagePrefix": "registry.example.org/team"}, "/global/imagePrefix"),
        ({"global.kafka.brokers": "kafka:9092"}, "'brokers' not allowed"),
        ({"kafka.enabled": "yes"}, "/kafka/enabled"),
        ({"gateway": {}}, "'gateway' not allowed"),
        ({"ws-edge.autoscaling.enabled": True, "ws-edge.autoscaling.max": 1}, "autoscaling.max must not be below"),
        ({"jobs.enabled": True}, "program: name the file by --set-file"),
        (
            {"jobs.enabled": True, "jobs.program": "x", "jobs.runners": 3},
            "jobs.runners is 3, and query-service.replicas 2",
        ),
        (
            {"jobs.enabled": True, "jobs.program": "x", "query-service.autoscaling.enabled": True},
            "query-service.autoscaling must be off",
        ),
    ],
)
def test_a_value_that_is_unknown_or_wrong_is_refused(values: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(HelmError) as error:
        render(STATECAST, values)

    assert reason in str(error.value)


@pytest.mark.parametrize("name", CHARTS)
def test_a_variable_that_the_chart_sets_is_not_set_again(name: str) -> None:
    values = {"program": "x"} if name == "jobs" else {}
    [workload] = [each for each in render(CHARTS[name], values) if each["kind"] in ("StatefulSet", "CronJob")]
    for variable in {each["name"] for each in container_of(workload)["env"]} - {DEFAULT_VARIABLE}:
        with pytest.raises(HelmError, match=f"{variable} is set by other values"):
            render(CHARTS[name], {**values, "env": {variable: "x"}})


def test_java_options_of_ones_own_take_the_place_of_the_default() -> None:
    [processor] = every("StatefulSet", render(CHARTS["stream-processor"], {"env": {DEFAULT_VARIABLE: "-Xss2m"}}))
    values = [each["value"] for each in container_of(processor)["env"] if each["name"] == DEFAULT_VARIABLE]

    assert values == ["-Xss2m"]


@pytest.mark.parametrize("name", ALL)
def test_a_chart_has_the_version_of_its_part(name: str) -> None:
    version = tomllib.loads((PARTS[name] / "pyproject.toml").read_text())["project"]["version"]
    chart = yaml.safe_load((ALL[name] / "Chart.yaml").read_text())

    assert (chart["version"], str(chart["appVersion"])) == (version, version)


def test_all_charts_share_one_library() -> None:
    assert {(each / "charts" / "statecast-library").resolve() for each in ALL.values()} == {LIBRARY}


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
