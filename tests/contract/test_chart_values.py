"""Charts refuse wrong values by their names, before anything is installed, and take good ones of every form."""

from collections.abc import Mapping
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # the package ships no types
import pytest
from rendered_charts import container_of, every

from testkit.charts import CHARTS, STATECAST, HelmError, render

KUBERNETES = "1.37"
DEFAULT_VARIABLE = "STREAM_PROCESSOR_JAVA_OPTIONS"
"""The one variable of a chart that gives way to a value of `env`."""
PROGRAM = "print()\n"


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
        (
            {"ws-edge.resources.requests": {"cpu": "600m"}, "ws-edge.resources.limits": {"cpu": 0.5}},
            "requests.cpu is 600m",
        ),
        ({"ws-edge.resources.limits": {"memory": "255Mi"}}, "resources: requests.memory is 256Mi, above limits.memory"),
        ({"ws-edge.resources.limits": {"memory": "268M"}}, "above limits.memory of 268M"),
        ({"ws-edge.resources.limits": {"memory": "2e8"}}, "above limits.memory of 2e8"),
        ({"ws-edge.resources.limits": {"memory": 200000000}}, "above limits.memory of 2e+08"),
        (
            {
                "ws-edge.resources.requests": {"ephemeral-storage": "1.1Gi"},
                "ws-edge.resources.limits": {"ephemeral-storage": "1Gi"},
            },
            "requests.ephemeral-storage is 1.1Gi, above limits.ephemeral-storage of 1Gi",
        ),
        ({"ws-edge.resources.requests": {"example.org/device": 1}}, "limits.example.org/device must be the same"),
        ({"kafka.resources.limits": {"memory": "1023Mi"}}, "kafka.resources: requests.memory is 1Gi, above"),
        ({"kong.resources.requests": {"memory": "2Gi"}}, "kong.resources: requests.memory is 2Gi, above"),
        ({"ws-edge.query.peers": [{"ipBlock": {"cidr": "10.1.2.0/24"}}]}, 'query.port: "grpc" is the name of a port'),
        ({"ws-edge.env": {"ws_edge_instance": "one"}}, "env: ws_edge_instance is set by other values of the chart"),
        ({"ws-edge.env": {"WS_EDGE_MAX_SOCKETS": "5", "ws_edge_max_sockets": "6"}}, "env: ws_edge_max_sockets is set"),
        ({"ws-edge.scheduling.tolerations": [{"operator": "Any"}]}, "/scheduling/tolerations/0/operator"),
        ({"global.scheduling.nodeSelector": {"pool": 1}}, "/global/scheduling/nodeSelector/pool"),
        ({"global.scheduling.priorityClass": "high"}, "'priorityClass' not allowed"),
        ({"global.clusterDomain": ""}, "/global/clusterDomain"),
        ({"cdc-simulator.postgres.url": "postgresql://statecast:secret@postgres:5432/statecast"}, "/postgres/url"),
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
        (
            {"egress": [{"to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}], "ports": [{"port": "smtp"}]}]},
            'egress: "smtp" is the name of a port, and addresses of an ipBlock need its number',
        ),
        (
            {"resources.requests": {"cpu": 1.5}, "resources.limits": {"cpu": "1"}},
            "resources: requests.cpu is 1.5, above",
        ),
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
        "resources.requests": {"cpu": 0.5, "memory": "1.5Gi", "ephemeral-storage": "1e9", "example.org/device": 1},
        "resources.limits": {"cpu": "500m", "memory": 1610612736, "ephemeral-storage": "1G", "example.org/device": "1"},
        "image": f"registry:5000/team/ws_edge:1.0@sha256:{'0' * 64}",
        "global.imagePrefix": "localhost:5000/",
        "env": None,
    }
    [edge] = every("StatefulSet", render(CHARTS["ws-edge"], values))

    assert container_of(edge)["image"] == values["image"]
    kubernetes_validate.validate(edge, KUBERNETES, strict=True)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (
            {"executors.driverResources.requests.memory": "3Gi"},
            "executors.driverResources: requests.memory is 3Gi, above",
        ),
        ({"executors.driverResources": {"limits": {"memory": "1Gi"}}}, "STREAM_PROCESSOR_DRIVER_MEMORY: a heap of 1g"),
        (
            {"env": {"STREAM_PROCESSOR_DRIVER_MEMORY": "2048m"}},
            "2048m leaves nothing of executors.driverResources.limits",
        ),
        ({"executors.spark": {"spark.kubernetes.executor.limit.cores": "100m"}}, "executors.cpu is 150m, above"),
        ({"executors.apiPorts": []}, "/executors/apiPorts"),
    ],
)
def test_values_of_executors_that_do_not_fit_are_refused(values: Mapping[str, Any], reason: str) -> None:
    with pytest.raises(HelmError) as error:
        render(CHARTS["stream-processor"], {"executors.enabled": True, **values})

    assert reason in str(error.value)


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
