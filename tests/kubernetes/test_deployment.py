"""The charts run on a cluster as they are: they serve, are locked down, and take a pipeline that is not shipped."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from drivers.gateway_client import GatewayClient
from drivers.order_source import OrderSource

from query_service.settings import SHIPPED_STORES
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.charts import CHARTS, render
from testkit.kubernetes.cluster import Cluster, KubectlError, Object
from testkit.kubernetes.deployment import EXECUTORS, INFRA, NAMESPACE, Deployment, config_map
from testkit.waiting import eventually

SERVERS = {"cdc-simulator": 1, "stream-processor": 1, "query-service": 2, "ws-edge": 2, "kong": 2, "kafka": 1}
"""How many pods the charts have of each."""
NO_CAPABILITIES = "0000000000000000"
PYTHON = "python"
STRANGERS = "statecast-strangers"
CONNECT = """
import socket, sys
host, port = sys.argv[1:]
address = socket.gethostbyname(host)
try:
    socket.create_connection((address, int(port)), timeout=3).close()
except TimeoutError:
    print("silent")
else:
    print("connected")
"""
"""Looks a name up, which everybody may, and says whether anybody answers there."""
STORE = "orders-by-tracking-number"
PIPELINE = f"""
name: {STORE}
source: {{topic: orders, message: statecast.orders.v1.OrderChange, format: protobuf}}
where: tracking_number <> ''
group_by: tracking_number
keep: {{members: {{key: order_id, sort: updated_at}}}}
sink: {{topic: {STORE}}}
"""
TOPIC = {"name": STORE, "partitions": 4, "config": {"cleanup.policy": "compact"}}
STORE_ENTRY = {
    "name": STORE,
    "topic": STORE,
    "message": "statecast.orders.v1.Order",
    "keeps": "members",
    "readers": {"field": "customer_id"},
}

pytestmark = pytest.mark.timeout(900)


def stranger(namespace: str, image: str) -> Object:
    """Returns a pod of which no policy says anything."""
    container = {
        "name": "stranger",
        "image": image,
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}}
    spec = {"containers": [container], "securityContext": security, "terminationGracePeriodSeconds": 0}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "stranger", "namespace": namespace}, "spec": spec}


@pytest.fixture(scope="module")
def strangers(deployment: Deployment) -> Iterator[None]:
    """A pod without a policy in the namespace, and one in a namespace that has no policies."""
    cluster = deployment.cluster
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRANGERS}}])
    cluster.apply(stranger(namespace, deployment.simulator_image) for namespace in (NAMESPACE, STRANGERS))
    for namespace in (NAMESPACE, STRANGERS):
        cluster.run("-n", namespace, "wait", "--for=condition=Ready", "pod/stranger", "--timeout=120s", timeout_s=150)
    yield
    cluster.run("-n", NAMESPACE, "delete", "pod", "stranger", "--now")
    cluster.run("delete", "namespace", STRANGERS, "--wait=false")


@pytest.mark.timeout(3 * 3600)  # the first time, Kubernetes is built
def test_every_workload_becomes_ready_and_the_topics_are_made(deployment: Deployment) -> None:
    assert deployment.ready_s.keys() == {*SERVERS, "kafka-topics-1"}
    for name, count in SERVERS.items():
        assert len(deployment.pods(name)) == count


@pytest.mark.parametrize("name", SERVERS)
def test_the_charts_fit_the_machine_and_no_pod_was_started_twice(deployment: Deployment, name: str) -> None:
    restarts = [each["restartCount"] for pod in deployment.pods(name) for each in pod["status"]["containerStatuses"]]

    assert restarts == [0] * SERVERS[name]


@pytest.mark.parametrize("pod", ["cdc-simulator-0", "stream-processor-0", "query-service-1", "ws-edge-1"])
def test_a_service_has_no_rights_and_cannot_change_its_image(deployment: Deployment, pod: str) -> None:
    text = deployment.cluster.execute(NAMESPACE, pod, ["cat", "/proc/1/status"])
    status = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    mounts = [line.split() for line in deployment.cluster.execute(NAMESPACE, pod, ["cat", "/proc/mounts"]).splitlines()]
    root_options = next(options for _, place, _, options, *_ in mounts if place == "/")

    assert "0" not in status["Uid"].split()
    assert {status["CapEff"], status["CapPrm"], status["CapBnd"]} == {NO_CAPABILITIES}
    assert status["NoNewPrivs"] == "1"
    assert "ro" in root_options.split(",")


def test_the_namespace_refuses_a_pod_that_may_do_more(deployment: Deployment) -> None:
    pod = stranger(NAMESPACE, deployment.simulator_image)
    pod["metadata"]["name"] = "root"
    pod["spec"]["securityContext"] = {}

    with pytest.raises(KubectlError, match='violates PodSecurity "restricted'):
        deployment.cluster.apply([pod])


def test_a_change_reaches_a_client_behind_the_gateway(source: OrderSource, alice: GatewayClient, order_id: str) -> None:
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
        source.advance(order_id, OrderStatus.ORDER_STATUS_SHIPPED, tracking_number="1Z999")
        frame = watch.until_status(order_id, "Shipped")

    assert frame["data"]["tracking_number"] == "1Z999"


def test_the_simulators_changes_are_looked_up(alice: GatewayClient) -> None:
    def customer_has_orders() -> None:
        answer = alice.rows("orders-by-customer", "customer-0001", limit=5)
        assert answer.status_code == httpx.codes.OK
        assert answer.json()["rows"], answer.text

    eventually(customer_has_orders, timeout_s=60)


def test_only_who_has_a_credential_is_answered(alice: GatewayClient, order_id: str) -> None:
    alice.headers = {}

    assert alice.get(f"/update/orders/{order_id}").status_code == httpx.codes.UNAUTHORIZED


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize(
    ("namespace", "pod", "host", "port", "answer"),
    [
        (NAMESPACE, "ws-edge-1", "query-service-1.query-service", 50051, "connected"),
        (NAMESPACE, "ws-edge-1", "query-service-1.query-service", 50061, "silent"),
        (NAMESPACE, "query-service-1", "query-service-2.query-service", 50061, "connected"),
        (NAMESPACE, "query-service-1", "query-service-2.query-service", 50051, "silent"),
        (NAMESPACE, "query-service-1", "kafka", 9092, "connected"),
        (NAMESPACE, "query-service-1", "ws-edge", 8080, "silent"),
        (NAMESPACE, "stranger", "query-service-1.query-service", 50061, "silent"),
        (NAMESPACE, "stranger", "query-service-1.query-service", 50051, "silent"),
        (NAMESPACE, "stranger", "kafka", 9092, "silent"),
        (NAMESPACE, "stranger", "ws-edge", 8080, "silent"),
        (STRANGERS, "stranger", "query-service-1.query-service.statecast", 50061, "silent"),
        (STRANGERS, "stranger", "kafka.statecast", 9092, "silent"),
        (STRANGERS, "stranger", "ws-edge.statecast", 8080, "silent"),
        (STRANGERS, "stranger", "kong.statecast", 443, "connected"),
    ],
)
def test_a_pod_reaches_what_a_policy_says_and_nothing_else(
    deployment: Deployment, namespace: str, pod: str, host: str, port: int, answer: str
) -> None:
    printed = deployment.cluster.execute(namespace, pod, [PYTHON, "-c", CONNECT, host, str(port)])

    assert printed.strip() == answer


def test_a_pipeline_in_a_config_map_is_looked_up_behind_the_gateway(
    deployment: Deployment, source: OrderSource, alice: GatewayClient, order_id: str, tmp_path: Path
) -> None:
    """As README.md says it: topics, then the processor, then who serves the new store."""
    deployment.cluster.apply([config_map("pipelines", {f"{STORE}.yaml": PIPELINE}), config_map("stores", _stores())])
    file = tmp_path / "topics.yaml"
    file.write_text(_topics())
    topics = ("--set-file", f"topics.file={file}")
    deployment.configure({}, *topics)
    deployment.cluster.wait_done(NAMESPACE, f"kafka-topics-{deployment.revision}")
    for name, value in (("stream-processor", "pipelinesConfigMap"), ("query-service", "storesConfigMap")):
        deployment.configure({f"{name}.{value}": value.removesuffix("ConfigMap")}, *topics)
        deployment.wait_settled(f"statefulset/{name}")
    tracking_number = f"1Z-{order_id}"

    source.advance(order_id, OrderStatus.ORDER_STATUS_SHIPPED, tracking_number)
    row = eventually(lambda: _only_row(alice, tracking_number), timeout_s=60)

    assert row["order_id"] == order_id
    assert row["tracking_number"] == tracking_number


def _topics() -> str:
    """Returns the shipped topics and the new one."""
    topics = yaml.safe_load((INFRA / "kafka" / "topics.yaml").read_text(encoding="utf-8"))
    topics["topics"].append(TOPIC)
    return yaml.safe_dump(topics)


def _stores() -> dict[str, str]:
    """Returns the shipped stores and the new one, as the query service takes them."""
    document = yaml.safe_load(SHIPPED_STORES.read_text(encoding="utf-8"))
    document["stores"].append(STORE_ENTRY)
    return {"stores.yaml": yaml.safe_dump(document)}


def _only_row(client: GatewayClient, tracking_number: str) -> Object:
    answer = client.rows(STORE, tracking_number)
    assert answer.status_code == httpx.codes.OK, answer.text
    [row] = answer.json()["rows"] or [None]
    assert row is not None, json.dumps(answer.json())
    shown: Object = row["row"]
    return shown


@pytest.mark.usefixtures("deployment")
@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cdc-simulator", {"domains": ["orders", "odds"]}),
        ("stream-processor", EXECUTORS | {"pipelinesConfigMap": "pipelines", "kafkaSecret": "kafka"}),
        ("query-service", {"autoscaling.enabled": True, "storesConfigMap": "stores"}),
        ("ws-edge", {"autoscaling.enabled": True, "mounts": [{"name": "tls", "secret": "tls", "path": "/etc/tls"}]}),
        ("jobs", {"program": "pass\n", "options": ["--parallel", "8"]}),
    ],
)
def test_the_api_server_takes_what_is_off_by_default(cluster: Cluster, name: str, values: Object) -> None:
    objects = render(CHARTS[name], values, namespace=STRANGERS)
    cluster.apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRANGERS}}])
    document = json.dumps({"apiVersion": "v1", "kind": "List", "items": objects})

    printed = cluster.run("apply", "--dry-run=server", "--filename", "-", text=document)

    assert printed.count("(server dry run)") == len(objects)


AUTOSCALED = ("query-service", "ws-edge")


@pytest.fixture
def without_autoscalers(deployment: Deployment) -> Iterator[None]:
    """However the story ends, there are no autoscalers, and as many pods as the charts say."""
    yield
    deployment.configure({f"{name}.autoscaling.enabled": False for name in AUTOSCALED})
    for name in AUTOSCALED:
        deployment.wait_settled(f"statefulset/{name}")


@pytest.mark.usefixtures("without_autoscalers")
def test_an_autoscaler_that_is_switched_on_begins_with_the_pods_that_there_are(deployment: Deployment) -> None:
    deployment.configure({f"{name}.autoscaling.enabled": True for name in AUTOSCALED})
    replicas = [deployment.cluster.get("statefulset", name, NAMESPACE)["spec"]["replicas"] for name in AUTOSCALED]

    assert replicas == [SERVERS[name] for name in AUTOSCALED]
