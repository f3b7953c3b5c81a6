"""The stack of compose.yaml runs from this project's images: it is locked down, serves, and survives failures."""

import httpx
import pytest
from drivers.gateway_client import Frame, Gateway, GatewayClient, offset_of
from drivers.order_source import OrderSource
from drivers.rest_reader import RestReader
from websockets.exceptions import InvalidStatus
from websockets.headers import build_authorization_basic

from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.background import in_background
from testkit.containers.stack import ContainerStack
from testkit.waiting import eventually, scaled

SERVERS = ("cdc-simulator", "stream-processor", "query-service-1", "query-service-2", "ws-edge-1", "ws-edge-2")
READS_UNTIL_FOUND = round(scaled(100))
"""In so many reads, five seconds of an idle machine, the edges find an instance that came back with another address."""
NO_CAPABILITIES = "0000000000000000"

pytestmark = pytest.mark.timeout(600)


def missed_update(client: GatewayClient, order_id: str, token: str, status: str) -> Frame:
    """Returns the update for a client that returns with its token, once a gateway that lost its edge lets it in."""
    with client.watch(order_id, token) as watch:
        return watch.until_status(order_id, status)


def test_every_container_becomes_healthy_and_the_topics_are_made(stack: ContainerStack) -> None:
    assert stack.ready_s.keys() == stack.compose.services.keys()
    assert stack.exit_status("topics") == 0
    assert all(stack.exit_status(name) is None for name in SERVERS)


@pytest.mark.parametrize("name", SERVERS)
def test_a_service_has_no_rights_and_cannot_change_its_image(stack: ContainerStack, name: str) -> None:
    status = dict(line.split(":\t", 1) for line in stack.read(name, "/proc/1/status").splitlines() if ":\t" in line)
    mounts = [line.split() for line in stack.read(name, "/proc/mounts").splitlines()]
    root_options = next(options for _, place, _, options, *_ in mounts if place == "/")

    assert "0" not in status["Uid"].split()
    assert {status["CapEff"], status["CapPrm"], status["CapBnd"]} == {NO_CAPABILITIES}
    assert status["NoNewPrivs"] == "1"
    assert "ro" in root_options.split(",")


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


def test_the_published_command_with_a_password_watches_an_order(source: OrderSource, gateway: Gateway) -> None:
    order_id = source.place("customer-0004", {"item-a": 1}).order_id
    phone = GatewayClient(gateway, {"Authorization": "Basic dXNlcm5hbWU6cGFzc3dvcmQ="})
    with phone.open("/update/orders") as watch:
        watch.send({"type": "order_updates_request", "order_id": order_id})

        watch.until_status(order_id, "Placed")


@pytest.mark.parametrize("login", [("username", "wrong"), ("nobody", "password"), None], ids=str)
def test_only_who_has_a_credential_is_answered(gateway: Gateway, login: tuple[str, str] | None) -> None:
    stranger = GatewayClient(gateway, {"Authorization": build_authorization_basic(*login)} if login else {})

    assert stranger.get("/update/orders/order-000001").status_code == httpx.codes.UNAUTHORIZED
    with pytest.raises(InvalidStatus) as refusal, stranger.open():
        pytest.fail("the socket was opened")
    assert refusal.value.response.status_code == httpx.codes.UNAUTHORIZED


def test_the_pages_are_served_without_tls(stack: ContainerStack) -> None:
    answer = httpx.get(f"http://{stack.published('kong', 8000)}/")

    assert answer.status_code == httpx.codes.OK
    assert "text/html" in answer.headers["content-type"]


@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("name", ["ws-edge-1", "ws-edge-2", "query-service-1", "query-service-2"])
def test_an_instance_ends_and_comes_back_without_a_failed_read(
    stack: ContainerStack, source: OrderSource, alice: GatewayClient, order_id: str, name: str, end: str
) -> None:
    with alice.watch(order_id) as watch:
        token = watch.until_status(order_id, "Placed")["token"]
    reader = RestReader(alice, order_id)

    with in_background(reader.read_until):
        reader.read_more()
        getattr(stack, end)(name)
        reader.read_more()
        source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
        paid = missed_update(alice, order_id, token, "Paid")
        stack.start(name)
        reader.read_more(READS_UNTIL_FOUND)

    assert reader.failures == []
    assert not reader.backward
    assert reader.offsets[-1] == offset_of(paid)


def test_query_instances_are_replaced_one_after_the_other_without_a_failed_read(
    stack: ContainerStack, alice: GatewayClient, order_id: str
) -> None:
    """Each comes back with another address, and soon after that it is the only one."""
    reader = RestReader(alice, order_id)

    with in_background(reader.read_until):
        for name in ("query-service-1", "query-service-2"):
            stack.stop(name)
            reader.read_more()
            stack.start(name)
            reader.read_more(READS_UNTIL_FOUND)

    assert reader.failures == []


def test_the_processor_is_killed_and_goes_on_from_its_checkpoint(
    stack: ContainerStack, source: OrderSource, alice: GatewayClient, order_id: str
) -> None:
    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
        stack.kill("stream-processor")
        source.advance(order_id, OrderStatus.ORDER_STATUS_PACKED)
        stack.start("stream-processor")
        watch.until_status(order_id, "Packed", timeout_s=60)
