"""Rollouts, scaling and a drain under load: no read fails, and who watches misses nothing."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from drivers.gateway_client import Frame, GatewayClient, OrderSocket, epoch_of, offset_of
from drivers.order_load import OrderLoad
from drivers.order_source import OrderSource
from drivers.rest_reader import RestReader
from websockets.exceptions import ConnectionClosed

from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.background import in_background
from testkit.kubernetes.cluster import KubectlError
from testkit.kubernetes.deployment import NAMESPACE, Deployment
from testkit.waiting import scaled, wait_until

READS_UNTIL_FOUND = 200
"""In so many reads, ten seconds, the gateway finds an edge that has come, and edges find a query instance."""
SOCKETS = 6
RESTART = 1012
"""The close code of an edge that restarts: come again, with your tokens."""
PYTHON = "python"
METRICS = "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:8080/metrics').read().decode())"
BUDGETS = ("query-service", "ws-edge", "kong")
"""The parts with two pods, one of which may be unavailable."""
DRAIN_S = 60
OTHERS = ("kafka", "cdc-simulator", "stream-processor")

pytestmark = pytest.mark.timeout(900)


def uids(deployment: Deployment, name: str) -> set[str]:
    return {each["metadata"]["uid"] for each in deployment.pods(name)}


@pytest.mark.parametrize(
    ("workload", "ends_sockets"),
    [
        ("statefulset/query-service", False),
        ("statefulset/stream-processor", False),
        ("statefulset/ws-edge", True),
        ("deployment/kong", True),
    ],
)
def test_a_rollout_under_load_fails_no_read_and_leaves_no_gap(
    deployment: Deployment, load: OrderLoad, workload: str, ends_sockets: bool, figures: list[str]
) -> None:
    name = workload.partition("/")[2]
    before = uids(deployment, name)

    with load.running():
        took_s = deployment.roll(workload)
        load.read_more(READS_UNTIL_FOUND)
        load.wait_changes()

    figures.append(f"{workload:32} rolled in {took_s:5.0f} s, {load.reconnections} reconnections")
    assert not before & uids(deployment, name)
    assert (load.reconnections > 0) == ends_sockets
    load.assert_nothing_failed_or_was_missed()


def test_sockets_of_rolled_edges_are_told_to_come_again_and_resume(
    deployment: Deployment, source: OrderSource, alice: GatewayClient, order_id: str
) -> None:
    with ExitStack() as open_sockets:
        watches = [open_sockets.enter_context(alice.watch(order_id)) for _ in range(SOCKETS)]
        placed = [each.until_status(order_id, "Placed") for each in watches]
        deployment.roll("statefulset/ws-edge")
        codes = [close_code(each) for each in watches]
    source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
    resumed = [missed_update(alice, order_id, frame["token"], "Paid") for frame in placed]

    assert codes == [RESTART] * SOCKETS
    for before, after in zip(placed, resumed, strict=True):
        assert epoch_of(after) == epoch_of(before)
        assert offset_of(after) > offset_of(before)


def close_code(watch: OrderSocket) -> int | None:
    """Returns the code with which the edge closes the socket; TimeoutError when it is still open."""
    try:
        while True:
            watch.next()
    except ConnectionClosed as closed:
        return closed.rcvd.code if closed.rcvd else None


def missed_update(client: GatewayClient, order_id: str, token: str, status: str) -> Frame:
    with client.watch(order_id, token) as watch:
        return watch.until_status(order_id, status)


@pytest.fixture
def two_edges(deployment: Deployment) -> Iterator[None]:
    """However the story ends, there are two edges again."""
    yield
    deployment.scale("statefulset/ws-edge", 2)


@pytest.mark.usefixtures("two_edges")
def test_edges_are_added_and_taken_away_without_a_word_to_the_gateway(
    deployment: Deployment, load: OrderLoad, alice: GatewayClient
) -> None:
    config = deployment.cluster.get("secret", "kong", NAMESPACE)["data"]
    with load.running(), ExitStack() as sockets:
        deployment.scale("statefulset/ws-edge", 3)

        def new_edge_is_used() -> bool:
            sockets.enter_context(alice.open())
            return sockets_of(deployment, "ws-edge-3") > 0

        wait_until(new_edge_is_used, "no socket came to ws-edge-3", interval_s=1)
        deployment.scale("statefulset/ws-edge", 2)
        load.read_more(READS_UNTIL_FOUND)

    assert deployment.cluster.get("secret", "kong", NAMESPACE)["data"] == config
    load.assert_nothing_failed_or_was_missed()


def sockets_of(deployment: Deployment, edge: str) -> float:
    """Returns how many sockets an edge has."""
    text = deployment.cluster.execute(NAMESPACE, edge, [PYTHON, "-c", METRICS])
    return float(next(line.split()[1] for line in text.splitlines() if line.startswith("ws_edge_sockets ")))


@pytest.fixture
def schedulable(deployment: Deployment) -> Iterator[str]:
    """The only node; however the story ends, pods come to it again."""
    nodes = deployment.cluster.run("get", "nodes", "-o", "name").split()
    if len(nodes) > 1:
        pytest.skip("the story is about a cluster of one node, where nothing that is evicted finds another place")
    node = nodes[0].removeprefix("node/")
    yield node
    deployment.cluster.run("uncordon", node)


def test_a_drain_of_the_only_node_leaves_one_of_each_and_what_it_took_comes_back(
    deployment: Deployment,
    source: OrderSource,
    alice: GatewayClient,
    order_id: str,
    schedulable: str,
) -> None:
    """A drain evicts pods without a budget, and one pod of each budget: the others stay, as none can be replaced.

    So the drain runs into its timeout, clients are served all the while, and afterwards all pods come back.
    """
    drain = ("drain", schedulable, f"--pod-selector=app.kubernetes.io/part-of={NAMESPACE}", "--delete-emptydir-data")
    with alice.watch(order_id) as watch:
        token = watch.until_status(order_id, "Placed")["token"]
    reader = RestReader(alice, order_id)

    with in_background(reader.read_until):
        reader.read_more()
        with pytest.raises(KubectlError, match="disruption budget"):
            deployment.cluster.run(*drain, f"--timeout={scaled(DRAIN_S):.0f}s", timeout_s=2 * DRAIN_S)
        left = {name: running_pods(deployment, name) for name in (*BUDGETS, *OTHERS)}
        reader.read_more(READS_UNTIL_FOUND)
        deployment.cluster.run("uncordon", schedulable)
        for name in (*BUDGETS, *OTHERS):
            deployment.wait_settled(f"{'deployment' if name == 'kong' else 'statefulset'}/{name}")
        source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
        paid = missed_update(alice, order_id, token, "Paid")
        reader.read_more(READS_UNTIL_FOUND)

    assert left == {**dict.fromkeys(BUDGETS, 1), **dict.fromkeys(OTHERS, 0)}
    assert reader.failures == []
    assert not reader.backward
    assert reader.offsets[-1] == offset_of(paid)


def running_pods(deployment: Deployment, name: str) -> int:
    """Returns how many pods run and are not about to end."""
    pods = deployment.pods(name)
    return sum(each["status"]["phase"] == "Running" and "deletionTimestamp" not in each["metadata"] for each in pods)
