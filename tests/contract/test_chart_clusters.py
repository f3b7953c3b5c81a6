"""The charts fit clusters other than the one that they were written on."""

from collections.abc import Mapping
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # the package ships no types
import pytest
import yaml
from rendered_charts import DOMAINS, EXECUTORS, MANIFESTS, SEND_EMAIL, WITH_POSTGRES, WORKLOADS, Manifest, every, pod_of
from service_facts import SETTINGS

from testkit.charts import CHARTS, STATECAST, render

KUBERNETES = "1.37"
POOL = {"nodeSelector": {"pool": "statecast"}, "priorityClassName": "high"}
TOLERATION = {"key": "pool", "operator": "Equal", "value": "1", "effect": "NoSchedule"}
LIKE_NUMBERS = {
    **{f"{name}.kafkaSecret": "1e5" for name in (*SETTINGS, "jobs", "topics")},
    **{f"{name}.storage.class": "0123" for name in ("cdc-simulator", "stream-processor", "query-service", "kafka")},
    **{f"kong.{name}": "1e5" for name in ("configSecret", "gatewaySecret", "tlsSecret")},
    "postgres.enabled": True,
    "postgres.secret": "1e5",
    "postgres.storage.class": "0123",
    "query-service.storesConfigMap": "0123",
    "stream-processor.pipelinesConfigMap": "null",
    "ws-edge.gateway.secret": "true",
    "ws-edge.mounts": [{"name": "tls", "path": "/tls", "secret": "0123"}],
    "cdc-simulator.domains": ["orders", "on"],
    "cdc-simulator.postgres.secret": "1e5",
    "jobs.enabled": True,
    "jobs.name": "y",
    "global.monitoring": "0123",
    "global.kafka.namespace": "1e5",
    "global.imagePullSecrets": [{"name": "0123"}],
}
"""Names that YAML would read as something else than texts."""


@pytest.mark.parametrize("objects", [MANIFESTS, EXECUTORS, WITH_POSTGRES], ids=["defaults", "executors", "postgres"])
def test_every_service_has_addresses_on_which_its_pods_listen(objects: list[Manifest]) -> None:
    assert {tuple(each["spec"]["ipFamilies"]) for each in every("Service", objects)} == {("IPv4",)}


def test_a_name_that_looks_like_a_number_stays_a_text() -> None:
    objects = render(
        STATECAST, LIKE_NUMBERS, "--set-file", f"jobs.program={SEND_EMAIL}", "--namespace", "1e5", namespace="1e5"
    )
    executors = {"executors.enabled": True, "kafkaSecret": "1e5", "storage.class": "0123"}
    objects += render(CHARTS["stream-processor"], executors, namespace="0123")

    for each in objects:
        kubernetes_validate.validate(each, KUBERNETES, strict=True)
    assert {each["metadata"]["namespace"] for each in objects} == {"1e5", "0123"}
    assert "null" in {
        volume["configMap"]["name"]
        for workload in every("StatefulSet", objects)
        for volume in pod_of(workload)["spec"].get("volumes", [])
        if "configMap" in volume
    }


def test_all_pods_run_where_the_installation_says() -> None:
    values = {"global.scheduling": {**POOL, "tolerations": [TOLERATION]}, "cdc-simulator.domains": DOMAINS}
    objects = render(STATECAST, values, "--values", str(STATECAST / "postgres.yaml"))
    objects += render(
        CHARTS["stream-processor"], {"executors.enabled": True, "global.scheduling": values["global.scheduling"]}
    )
    pods = [pod_of(each)["spec"] for each in objects if each["kind"] in WORKLOADS]
    [template] = [
        each["data"]["executor.yaml"] for each in every("ConfigMap", objects) if "executor.yaml" in each["data"]
    ]

    for pod in [*pods, yaml.safe_load(template)["spec"]]:
        assert POOL.items() <= pod.items()
        assert pod["tolerations"] == [TOLERATION]


def test_a_service_may_run_elsewhere_than_the_rest() -> None:
    affinity: Manifest = {"nodeAffinity": {}}
    values = {
        "global.scheduling": POOL,
        "ws-edge.scheduling": {"nodeSelector": {"pool": "edges"}, "affinity": affinity},
    }
    pods = {each["metadata"]["name"]: pod_of(each)["spec"] for each in every("StatefulSet", render(STATECAST, values))}

    assert pods["ws-edge"]["nodeSelector"] == {"pool": "edges"}
    assert pods["ws-edge"]["affinity"] == affinity
    assert pods["ws-edge"]["priorityClassName"] == "high"
    assert pods["query-service"]["nodeSelector"] == POOL["nodeSelector"]
    assert "affinity" not in pods["query-service"]


def test_names_end_in_the_domain_of_the_cluster() -> None:
    values = {"executors.enabled": True, "global.kafka.namespace": "brokers", "global.clusterDomain": "example.org"}
    text = yaml.safe_dump_all(render(CHARTS["stream-processor"], values, namespace="mine"))

    assert "brokers.svc.example.org" in text
    assert "stream-processor-0.stream-processor.mine.svc.example.org" in text
    assert "cluster.local" not in text


def test_policies_admit_the_dns_of_the_cluster() -> None:
    peers = [{"ipBlock": {"cidr": "169.254.20.10/32"}}]
    policies = every("NetworkPolicy", render(STATECAST, {"global.dns": {"peers": peers, "port": 5353}}))
    rule = {"to": peers, "ports": [{"port": 5353, "protocol": "UDP"}, {"port": 5353, "protocol": "TCP"}]}
    without = [each for each in policies if rule not in each["spec"]["egress"]]

    assert [each["metadata"]["name"] for each in without] == ["kafka-clients"], "beside that of each pod"


def test_policies_open_the_ports_of_all_brokers() -> None:
    values = {"global.kafka.bootstrap": "one:9094,two:9095", "kafka.enabled": False}
    policies = {each["metadata"]["name"]: each for each in every("NetworkPolicy", render(STATECAST, values))}
    ports = [{"port": 9092}, {"port": 9094}, {"port": 9095}]

    for name in ("kafka-clients", "kafka-topics", *SETTINGS):
        assert ports in [rule["ports"] for rule in policies[name]["spec"]["egress"]], name


def test_a_driver_reaches_the_api_server_at_any_port() -> None:
    objects = render(CHARTS["stream-processor"], {"executors.enabled": True, "executors.apiPorts": [16443]})
    [policy] = [each for each in every("NetworkPolicy", objects) if each["metadata"]["name"] == "stream-processor"]

    assert {"ports": [{"port": 16443}]} in policy["spec"]["egress"]


def test_instances_have_addresses_that_other_namespaces_resolve() -> None:
    [instance] = every("StatefulSet", render(CHARTS["query-service"], {"domain": "query-service.statecast.svc"}))
    [container] = pod_of(instance)["spec"]["containers"]

    assert {
        "name": "QUERY_SERVICE_ADVERTISED_HOST",
        "value": "$(QUERY_SERVICE_INSTANCE).query-service.statecast.svc",
    } in container["env"]


def test_a_job_may_run_beside_a_query_service_of_another_release() -> None:
    values = {"jobs.enabled": True, "jobs.runners": 3, "query-service.enabled": False}

    assert every("CronJob", render(STATECAST, values, "--set-file", f"jobs.program={SEND_EMAIL}"))


DRAINS = {
    "cdc-simulator": {"CDC_SIMULATOR_DRAIN_S": 1.0},
    "stream-processor": {"STREAM_PROCESSOR_DRAIN_S": 1.0},
    "query-service": {"QUERY_SERVICE_DRAIN_S": 1.0},
    "ws-edge": {"WS_EDGE_DRAIN_NOTICE_MS": 0.001, "WS_EDGE_DRAIN_WINDOW_MS": 0.001},
}
"""The settings that prolong a stop, and their units in seconds."""


@pytest.mark.parametrize(("service", "units"), DRAINS.items())
def test_a_pod_has_the_time_that_its_drain_takes(service: str, units: Mapping[str, float]) -> None:
    fields = SETTINGS[service].model_fields
    prefix = f"{service.upper().replace('-', '_')}_"
    assert {prefix + name.upper() for name in fields if name.startswith("drain_")} == units.keys()

    for variable, unit in units.items():
        default = fields[variable.removeprefix(prefix).lower()].default
        for name, seconds, more in (
            (variable, 0, 0),
            (variable, 60.5, 61),
            (variable.lower(), 60, 60),
            (variable, -1, 0),
        ):
            assert grace(service, {name: str(default + seconds / unit)}) == grace(service, {}) + more
    assert grace(service, dict.fromkeys(units, "600000")) > grace(service, {}) + 590


def grace(service: str, env: Mapping[str, Any]) -> int:
    [workload] = every("StatefulSet", render(CHARTS[service], {"env": env}))
    return int(pod_of(workload)["spec"]["terminationGracePeriodSeconds"])
