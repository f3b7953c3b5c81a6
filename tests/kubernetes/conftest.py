"""Statecast on a Kubernetes cluster: the one of KUBECONFIG, or a node that is built and run for these tests alone."""

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from drivers.gateway_client import Gateway, GatewayClient
from drivers.order_load import OrderLoad
from drivers.order_source import OrderSource
from drivers.pod_producer import PodProducer

from testkit.containers.engine import Engine, NoEngineError, find_engine
from testkit.containers.images import MB, build_images
from testkit.kubernetes.cluster import Cluster, Object
from testkit.kubernetes.deployment import NAMESPACE, Deployment, GatewayFiles
from testkit.kubernetes.node import Node, NodeError, check_machine, running_node
from testkit.kubernetes.node_images import STAND_INS, import_images
from testkit.kubernetes.programs import BuildError, build_programs, programs_directory

KUBECONFIG = os.environ.get("KUBECONFIG")
IMAGE_PREFIX = os.environ.get("IMAGE_PREFIX", "")
CHOSEN_STAND_INS = os.environ.get("STAND_INS", " ".join(STAND_INS)).split()
SOURCE = "order-source"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """The container engine that has this project's images."""
    try:
        return find_engine()
    except NoEngineError as error:
        pytest.skip(f"without KUBECONFIG: {error}")


@pytest.fixture(scope="session")
def programs() -> Path:
    """Kubernetes' programs, built the first time, unless an earlier node was left behind."""
    directory = programs_directory()
    try:
        check_machine(directory / "node")
        for _ in build_programs(directory):
            pass
    except (NodeError, BuildError) as error:
        pytest.skip(f"without KUBECONFIG: {error}")
    return directory


@pytest.fixture(scope="session")
def node(request: pytest.FixtureRequest, figures: list[str]) -> Iterator[Node | None]:
    """A node of the run's own, with all images; None with a cluster that is there already."""
    if KUBECONFIG:
        if shutil.which("kubectl") is None:
            pytest.skip("KUBECONFIG is set, and there is no kubectl")
        yield None
        return
    engine: Engine = request.getfixturevalue("engine")
    programs: Path = request.getfixturevalue("programs")
    for _ in build_images(engine):
        pass
    with running_node(programs / "node", programs) as node:
        began = time.monotonic()
        sizes = import_images(engine, node.files.containerd_socket, programs, CHOSEN_STAND_INS)
        imported_s = time.monotonic() - began
        node.start_names()
        figures += [f"{image:40} {size / MB:6.0f} MB" for image, size in sizes.items()]
        figures += [f"{name:24} ready after {seconds:6.1f} s" for name, seconds in node.ready_s.items()]
        figures.append(f"{'images':24} imported in {imported_s:6.1f} s")
        yield node


@pytest.fixture(scope="session")
def cluster(node: Node | None) -> Cluster:
    """The cluster of the run."""
    return node.cluster if node else Cluster()


@pytest.fixture(scope="session")
def authority() -> trustme.CA:
    """The CA that clients of the gateway trust."""
    return trustme.CA()


@pytest.fixture(scope="session")
def deployment(cluster: Cluster, node: Node | None, authority: trustme.CA, figures: list[str]) -> Iterator[Deployment]:
    """Statecast by its charts, all of it ready; a test that replaces a part waits until it is ready again."""
    deployment = Deployment(cluster, IMAGE_PREFIX)
    deployment.begin()
    try:
        if node:
            node.balance(NAMESPACE, "kong")
        issued = authority.issue_cert(deployment.address())
        chain = b"".join(each.bytes() for each in issued.cert_chain_pems).decode()
        deployment.up(GatewayFiles(secrets.token_urlsafe(32), chain, issued.private_key_pem.bytes().decode()))
        figures += [f"{name:24} ready after {seconds:6.1f} s" for name, seconds in deployment.ready_s.items()]
        yield deployment
    finally:
        if node is None:
            deployment.down()


@pytest.fixture(scope="session")
def gateway(deployment: Deployment, authority: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """The gateway, as clients outside of the cluster see it."""
    file = tmp_path_factory.mktemp("tls") / "ca.pem"
    authority.cert_pem.write_to_path(str(file))
    address = deployment.address()
    return Gateway(f"https://{address}", f"wss://{address}", str(file))


@pytest.fixture
def alice(gateway: Gateway) -> GatewayClient:
    """The phone of customer-0001."""
    return GatewayClient(gateway, {"apikey": "alice-demo-key"})


@pytest.fixture
def operator(gateway: Gateway) -> GatewayClient:
    """One of the staff, who sees the orders of all customers."""
    return GatewayClient(gateway, {"apikey": "operator-demo-key"})


@pytest.fixture(scope="session")
def source_pod(deployment: Deployment) -> str:
    """A pod that sends changes to Kafka, in the place of a connector of one's own: the policies let it."""
    deployment.cluster.apply([_source(deployment.simulator_image)])
    deployment.cluster.wait_rolled(NAMESPACE, f"deployment/{SOURCE}")
    return f"deployment/{SOURCE}"


@pytest.fixture
def producer(deployment: Deployment, source_pod: str) -> Iterator[PodProducer]:
    """Sends records from that pod."""
    with PodProducer(deployment.cluster, NAMESPACE, source_pod) as producer:
        yield producer


@pytest.fixture
def source(producer: PodProducer) -> OrderSource:
    """A source that sends the test's own changes."""
    return OrderSource("", producer=producer)


@pytest.fixture
def load(gateway: Gateway, operator: GatewayClient, source: OrderSource, producer: PodProducer) -> OrderLoad:
    """Changes, watchers and readers, once the story lets them run."""
    return OrderLoad(gateway, operator, source, producer.values)


@pytest.fixture
def order_id(source: OrderSource, alice: GatewayClient) -> str:
    """An order of alice's that has been placed and can be read."""
    order_id = source.place("customer-0001", {"item-a": 1}).order_id
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed", timeout_s=60)
    return order_id


def _source(image: str) -> Object:
    """It is no part of Statecast, and so a drain of Statecast's pods leaves it; a label lets it reach Kafka."""
    labels = {"app.kubernetes.io/name": SOURCE, "statecast/kafka": "client"}
    container = {
        "name": SOURCE,
        "image": image,
        "command": ["sleep", "infinity"],
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    pod = {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": SOURCE, "namespace": NAMESPACE},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }
