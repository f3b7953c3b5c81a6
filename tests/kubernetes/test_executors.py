"""The processor on executor pods: one of them is killed, and the state is exact all the same."""

import time
from collections.abc import Iterator

import pytest
from drivers.gateway_client import GatewayClient
from drivers.order_load import OrderLoad
from drivers.order_source import OrderSource

from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.kubernetes.cluster import Object
from testkit.kubernetes.deployment import EXECUTORS_NAMESPACE, Deployment
from testkit.waiting import wait_until

PROCESSOR = "statefulset/stream-processor"
DRIVER = "stream-processor"
EXECUTOR = "stream-processor-executor"
EXECUTORS = 3
REPLACED_S = 300
PIPELINES = 3
UP = "stream_processor_query_up"
KAFKA = f":{9092:04X}"
"""How a remote address in the kernel's table of connections ends when it is the broker's."""
METRIC = """
import sys, urllib.request
lines = urllib.request.urlopen("http://127.0.0.1:9102/metrics").read().decode().splitlines()
print(*(line.split()[1] for line in lines if line.startswith((sys.argv[1] + "{", sys.argv[1] + " "))))
"""
"""Runs in the driver's pod: the values of a metric."""

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def executors(deployment: Deployment) -> Iterator[None]:
    """The other form of the processor, as README.md says; at the end there is the one that shares a pod again."""
    deployment.install_executors()
    deployment.wait_settled(PROCESSOR, EXECUTORS_NAMESPACE)
    wait_caught_up(deployment)
    yield
    deployment.remove_executors()
    deployment.wait_settled(PROCESSOR)


def executor_pods(deployment: Deployment) -> dict[str, str]:
    """Returns the ids of the executors that run, by their names, which others take over."""
    pods = deployment.pods(EXECUTOR, EXECUTORS_NAMESPACE)
    running = [each["metadata"] for each in pods if each["status"]["phase"] == "Running"]
    return {each["name"]: each["uid"] for each in running}


def working_executor(deployment: Deployment) -> str:
    """Returns the name of an executor that has tasks: one without is replaced, and no query ends."""
    for name in sorted(executor_pods(deployment)):
        table = deployment.cluster.execute(EXECUTORS_NAMESPACE, name, ["cat", "/proc/net/tcp", "/proc/net/tcp6"])
        if any(line.split()[2].endswith(KAFKA) for line in table.splitlines()):
            return name
    raise AssertionError("no executor has a connection to Kafka")


def driver(deployment: Deployment) -> Object:
    """Returns the status of the driver's container."""
    [pod] = deployment.pods(DRIVER, EXECUTORS_NAMESPACE)
    [container] = pod["status"]["containerStatuses"]
    status: Object = container
    return status


def wait_caught_up(deployment: Deployment) -> None:
    """Returns when all pipelines have checkpointed the records that were there at the call, and their tasks run again.

    Their checkpoints are new, so they begin with everything that Kafka has, and would begin with it again.
    """
    began = time.time()

    def is_checkpointed() -> bool:
        times = values_of(deployment, "stream_processor_last_checkpoint_timestamp_seconds")
        return len(times) == PIPELINES and min(times) > began

    def run() -> bool:
        tasks = values_of(deployment, "stream_processor_running_tasks")
        return len(tasks) == PIPELINES and [sum(tasks)] == values_of(deployment, "stream_processor_task_slots")

    wait_until(is_checkpointed, "no checkpoint of a pipeline", REPLACED_S, interval_s=1)
    wait_until(run, "tasks are missing")


def values_of(deployment: Deployment, metric: str) -> list[float]:
    """Returns the values of a metric of the processor, one for each pipeline if it has their names."""
    command = ["python", "-c", METRIC, metric]
    return [*map(float, deployment.cluster.execute(EXECUTORS_NAMESPACE, f"{DRIVER}-0", command).split())]


@pytest.mark.usefixtures("executors")
def test_executors_do_the_work(
    deployment: Deployment, source: OrderSource, alice: GatewayClient, order_id: str
) -> None:
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
        source.advance(order_id, OrderStatus.ORDER_STATUS_PACKED)
        watch.until_status(order_id, "Packed", timeout_s=60)

    assert len(executor_pods(deployment)) == EXECUTORS


@pytest.mark.usefixtures("executors")
def test_an_executor_is_killed_and_nothing_is_missed_or_told_twice(deployment: Deployment, load: OrderLoad) -> None:
    """The driver stays, and starts the queries of the executor again on a new one, from their checkpoints."""
    before = executor_pods(deployment)
    restarts = driver(deployment)["restartCount"]
    with load.running():
        wait_caught_up(deployment)
        victim = working_executor(deployment)
        deployment.cluster.run("-n", EXECUTORS_NAMESPACE, "delete", "pod", victim, "--grace-period=0", "--force")

        def is_back() -> bool:
            pods = executor_pods(deployment)
            return victim not in pods and len(pods) == EXECUTORS and values_of(deployment, UP) == [1] * PIPELINES

        wait_until(is_back, lambda: deployment.cluster.report(EXECUTORS_NAMESPACE), REPLACED_S, interval_s=1)
        wait_caught_up(deployment)
        load.wait_changes()

    assert driver(deployment)["restartCount"] == restarts
    assert len(set(before.values()) & set(executor_pods(deployment).values())) == EXECUTORS - 1
    load.assert_nothing_failed_or_was_missed()
