"""Bad input at every door answers with its error, and the door stays open for others."""

import httpx
import pytest
from drivers.gateway_client import Gateway, GatewayClient
from drivers.order_source import OrderSource
from drivers.topic_readers import DeadLetters
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.headers import build_authorization_basic

ALICE, BOB = "customer-0001", "customer-0002"


@pytest.mark.parametrize("login", [("username", "wrong"), ("nobody", "password"), None], ids=str)
def test_wrong_credentials_are_refused_by_the_gateway(gateway: Gateway, login: tuple[str, str] | None) -> None:
    headers = {"Authorization": build_authorization_basic(*login)} if login else {}
    stranger = GatewayClient(gateway, headers)

    assert stranger.get("/update/orders/order-000001").status_code == 401
    with pytest.raises(InvalidStatus) as refusal, stranger.open():
        pytest.fail("the socket was opened")
    assert refusal.value.response.status_code == 401


def test_the_edge_refuses_whoever_comes_without_the_gateways_secret(edge_url: str) -> None:
    answer = httpx.get(f"{edge_url}/update/orders/order-000001", headers={"X-Consumer-Custom-ID": ALICE})

    assert answer.status_code == 403


def test_another_customers_order_is_not_there_on_any_way_in(
    source: OrderSource, alice: GatewayClient, bob: GatewayClient
) -> None:
    order_id = source.place(BOB, {"item-a": 1}).order_id
    with bob.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")

    with alice.watch(order_id) as watch:
        frame = watch.next()

    assert (frame["type"], frame["data"]["status"]) == ("order_status_update", "Unknown")
    assert alice.get(f"/update/orders/{order_id}").status_code == 404
    assert alice.rows("orders-by-key", order_id).json()["rows"] == []
    assert alice.rows("orders-by-customer", BOB).status_code == 403
    assert alice.rows("orders-by-customer").status_code == 403
    assert alice.get("/v1/shards").status_code == 403


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{not json", "malformed_frame"),
        ('{"type": "order_updates_request"}', "malformed_frame"),
        ('{"type": "make_me_rich", "order_id": "1"}', "malformed_frame"),
        ('{"type": "order_updates_request", "order_id": {}}', "malformed_frame"),
    ],
)
def test_a_malformed_frame_is_answered_and_the_socket_goes_on(
    frame: str, code: str, source: OrderSource, alice: GatewayClient
) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    with alice.open() as watch:
        watch.send(frame)
        answer = watch.next()
        watch.send({"type": "order_updates_request", "order_id": order_id})
        watch.until_status(order_id, "Placed")

    assert (answer["type"], answer["error"]["code"]) == ("error", code)
    assert answer["error"]["message"]


def test_an_oversized_frame_closes_the_socket_with_its_code(alice: GatewayClient) -> None:
    with alice.open() as watch:
        watch.send("x" * 1_000_000)
        with pytest.raises(ConnectionClosed) as closing:
            watch.next()

    assert closing.value.rcvd is not None
    assert closing.value.rcvd.code == 1009


def test_an_unknown_order_is_not_found(alice: GatewayClient) -> None:
    assert alice.get("/update/orders/no-such-order").status_code == 404


def test_a_record_that_cannot_be_decoded_is_set_aside_and_the_flow_goes_on(
    source: OrderSource, alice: GatewayClient, dead_letters: DeadLetters
) -> None:
    poison = b"\xff\xffnot a change"
    source.send_raw(poison)
    order_id = source.place(ALICE, {"item-a": 1}).order_id

    with alice.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
    letter = dead_letters.until_value(poison)

    assert letter.key == b"poison"
    assert letter.headers["statecast-topic"] == "orders"
    assert letter.headers["statecast-reason"]
