"""Charts render valid manifests, refuse unknown values, and have the version of their part."""

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
from testkit.charts import CHARTS, STATECAST, HelmError, helm, render

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
DEFAULT_VARIABLE = "STREAM_PROCESSOR_JAVA_OPTIONS"
"""The one variable of a chart that gives way to a value of `env`."""

PROGRAM = "print()\n"
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
        ({"ws-edge.env": {"MY SETTING": "5"}}, "invalid propertyName 'MY SETTING'"),
        ({"ws-edge.query.addresses": "query-service"}, 'query.addresses: "query-service" must be HOST:PORT'),
        ({"ws-edge.query.addresses": "http://query:50051"}, 'query.addresses: "http://query:50051" must be HOST:PORT'),
        ({"ws-edge.query.addresses": "query:50051,query:65536"}, "a port is 1 to 65535"),
        ({"ws-edge.query.peers": ["x"]}, "/query/peers/0': got string, want object"),
        ({"ws-edge.query.peers": [{"podSelectors": {}}]}, "'podSelectors' not allowed"),
        ({"ws-edge.query.peers": [{"ipBlock": {"cidr": "10.1.2.3"}}]}, "/query/peers/0/ipBlock/cidr"),
        ({"ws-edge.query.peers": [{"ipBlock": {"cidr": "10.1.2.0/24"}, "podSelector": {}}]}, "/query/peers/0"),
        ({"ws-edge.query.port": 65536}, "/query/port"),
        ({"ws-edge.query": None}, "missing property 'query'"),
        ({"global": None}, "global: null removes the values that all charts need"),
        ({"global.kafka": None}, "missing property 'kafka'"),
        ({"kafka.storage": None}, "missing property 'storage'"),
        ({"ws-edge.autoscaling.enabled": "false"}, "/autoscaling/enabled': got string, want boolean"),
        ({"ws-edge.resources.limit": {"memory": "1Gi"}}, "'limit' not allowed"),
        ({"ws-edge.resources.limits": {"memory": "1GiB"}}, "/resources/limits/memory': '1GiB'"),
        ({"ws-edge.resources.limits": {"memory": "512m"}}, "/resources/limits/memory': '512m'"),
        ({"ws-edge.resources.limits": {"memory": 2}}, "/resources/limits/memory"),
        ({"ws-edge.resources.requests": {"cpu": "100mm"}}, "/resources/requests/cpu': '100mm'"),
        ({"ws-edge.resources.requests": {"cpus": 1}}, "'cpus' not allowed"),
        ({"ws-edge.kafkaSecret": "Kafka_Client"}, "/kafkaSecret': 'Kafka_Client'"),
        ({"ws-edge.gateway.secret": "s" * 254}, "/gateway/secret"),
        ({"ws-edge.mounts": [{"name": "n" * 58, "path": "/etc/tls", "secret": "tls"}]}, "/mounts/0/name"),
        ({"ws-edge.query.port": ""}, "/query/port"),
        ({"ws-edge.allowPlaintext": False}, "allowPlaintext: false needs WS_EDGE_TLS_CERTIFICATE in env"),
        (
            {"ws-edge.allowPlaintext": False, "ws-edge.env": {"WS_EDGE_TLS_CERTIFICATE": "/etc/tls/tls.crt"}},
            "allowPlaintext: false needs WS_EDGE_TLS_KEY in env",
        ),
        (
            {
                "query-service.allowPlaintext": False,
                "query-service.env": {"QUERY_SERVICE_TLS_CERTIFICATE": "/c", "QUERY_SERVICE_TLS_KEY": "/k"},
            },
            "allowPlaintext: false needs QUERY_SERVICE_SHARD_TLS_CERTIFICATE in env",
        ),
        ({"ws-edge.image": "ws edge:1"}, "/image"),
        ({"ws-edge.image": "registry:5000/ws-edge"}, "/image"),
        ({"ws-edge.image": "registry.example.org/Team/ws-edge:1"}, "/image"),
        ({"query-service.storage.size": "20GB"}, "/storage/size"),
        ({"query-service.storage.size": "0Gi"}, "/storage/size"),
        ({"cdc-simulator.rate": 0}, "/rate"),
        ({"cdc-simulator.domains": []}, "/domains"),
        ({"cdc-simulator.domains": ["orders-"]}, "/domains/0"),
        ({"cdc-simulator.domains": ["d" * 39]}, "/domains/0"),
        ({"stream-processor.pipelines": ["/domains/orders; id"]}, "/pipelines/0"),
        ({"stream-processor.driverMemory": "4g"}, "driverMemory: a heap of 4g leaves nothing of"),
        ({"stream-processor.driverMemory": "1024m", "stream-processor.resources.limits": {"memory": "0.5Gi"}}, "heap"),
        ({"stream-processor.executors.spark": {"executor.cores": "2"}}, "'executor.cores'"),
        ({"stream-processor.debeziumDomains": ["/domains/orders"]}, "/debeziumDomains/0"),
        ({"global.kafka.bootstrap": ""}, 'global.kafka.bootstrap: "" must be HOST:PORT'),
        ({"global.kafka.bootstrap": "one:9092,two"}, 'global.kafka.bootstrap: "one:9092,two" must be HOST:PORT'),
        ({"global.kafka.namespace": "kafka.example.org"}, "/global/kafka/namespace"),
        ({"global.imagePrefix": "registry.example.org/team"}, "/global/imagePrefix"),
        ({"global.imagePrefix": "https://registry.example.org/"}, "/global/imagePrefix"),
        ({"global.kafka.brokers": "kafka:9092"}, "'brokers' not allowed"),
        ({"kafka.enabled": "yes"}, "/kafka/enabled"),
        ({"gateway": {}}, "'gateway' not allowed"),
        ({"ws-edge.autoscaling.enabled": True, "ws-edge.autoscaling.max": 1}, "autoscaling.max must not be below"),
        ({"topics.file": "topics.yaml"}, "topics.file: give the text of a file, by --set-file topics.file=FILE"),
        (
            {"jobs.enabled": True, "jobs.program": PROGRAM, "jobs.runners": 3},
            "jobs.runners is 3, and query-service.replicas 2",
        ),
        (
            {"jobs.enabled": True, "jobs.program": PROGRAM, "query-service.autoscaling.enabled": True},
            "query-service.autoscaling must be off",
        ),
    ],
)
def test_a_value_that_is_unknown_or_wrong_is_refused(values: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(HelmError) as error:
        render(STATECAST, values)

    assert reason in str(error.value)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"program": ""}, 'program: give the text of a file, by --set-file program=FILE, and not ""'),
        ({"program": "send_email.py"}, 'program=FILE, and not "send_email.py"'),
        ({"name": "query-service"}, "name: query-service is another part's"),
        ({"name": "weekly-"}, "/name': 'weekly-'"),
        ({"name": "n" * 42}, "/name"),
        ({"timeZone": "UTC+2"}, "/timeZone': 'UTC+2'"),
        ({"schedule": "0 7 * *"}, "/schedule': '0 7 * *'"),
        ({"schedule": "61 7 * * 1"}, 'schedule: the minute is "61", and takes 0 to 59'),
        ({"schedule": "0 7-24 * * 1"}, 'schedule: the hour is "7-24", and takes 0 to 23'),
        ({"schedule": "0 7 0 * *"}, 'schedule: the day of the month is "0", and takes 1 to 31'),
        ({"schedule": "0 7 * june *"}, 'schedule: the month is "june", and takes 1 to 12'),
        ({"schedule": "0 7 * * 7"}, 'schedule: the day of the week is "7", and takes 0 to 6'),
        ({"schedule": "*/0 7 * * 1"}, 'schedule: the minute is "*/0"'),
        ({"egress": [{"to": ["10.1.2.3"]}]}, "/egress/0/to/0"),
        ({"egress": [{"ports": [{"port": "25/tcp"}]}]}, "/egress/0/ports/0/port"),
    ],
)
def test_a_value_of_a_job_that_is_wrong_is_refused(values: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(HelmError) as error:
        render(CHARTS["jobs"], {"program": PROGRAM, **values})

    assert reason in str(error.value)


@pytest.mark.parametrize("schedule", ["*/5 7-9,12 1-31/2 JAN,jul MON-fri", "00 07 * * 0,6", "0-59/15 23 31 12 sun"])
def test_a_schedule_is_as_in_a_crontab(schedule: str) -> None:
    [job] = every("CronJob", render(CHARTS["jobs"], {"program": PROGRAM, "schedule": schedule}))

    assert job["spec"]["schedule"] == schedule


def test_good_values_of_every_form_are_taken() -> None:
    block = {"ipBlock": {"cidr": "10.1.0.0/16", "except": ["10.1.2.0/24"]}}
    values = {
        "query.addresses": "one.example.org:50051, [fd00::1]:50051,10.1.2.3:65535",
        "query.peers": [block, {"ipBlock": {"cidr": "fd00::/8"}}, {"namespaceSelector": {}, "podSelector": {}}],
        "query.port": 50051,
        "resources.requests": {"cpu": 0.5, "memory": "1.5Gi", "ephemeral-storage": "1G"},
        "resources.limits": {"cpu": "1500m", "memory": 1610612736, "example.org/device": 1},
        "image": f"registry:5000/team/ws_edge:1.0@sha256:{'0' * 64}",
        "global.imagePrefix": "localhost:5000/",
        "env": None,
    }
    [edge] = every("StatefulSet", render(CHARTS["ws-edge"], values))

    assert container_of(edge)["image"] == values["image"]
    kubernetes_validate.validate(edge, KUBERNETES[-1], strict=True)


def test_a_setting_of_spark_that_the_chart_sets_is_not_set_again() -> None:
    own = {"executors.enabled": True, "executors.spark": {"spark.executor.cores": "2"}}
    with pytest.raises(HelmError, match=r"executor[.]cores is set by other values of the chart"):
        render(CHARTS["stream-processor"], own)


@pytest.mark.parametrize(
    "values",
    [
        {"driverMemory": "4g", "resources.limits": {"memory": "7Gi"}},
        {"driverMemory": "4g", "resources.limits": {"memory": 8589934592}},
        {"driverMemory": "4g", "resources": {"limits": None}},
        {"driverMemory": "4g", "executors.enabled": True},
    ],
)
def test_a_heap_below_the_limit_of_memory_is_taken(values: Mapping[str, Any]) -> None:
    assert every("StatefulSet", render(CHARTS["stream-processor"], values))


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


@pytest.mark.parametrize("name", CHARTS)
def test_a_variable_that_the_chart_sets_is_not_set_again(name: str) -> None:
    values = {"program": PROGRAM} if name == "jobs" else {}
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
