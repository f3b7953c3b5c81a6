"""Access ends in the open socket when the token expires, unless it is renewed. Nobody reads the rows of others."""

import httpx
import pytest
from drivers.gateway_client import Frame, GatewayClient, OrderSocket, TokenClient
from drivers.order_source import OrderSource
from drivers.range_reader import frames_with
from websockets.exceptions import ConnectionClosed

from local_stack.running_stack import RunningStack
from statecast.orders.v1.order_pb2 import OrderStatus
from testkit.waiting import eventually, scaled

ALICE, BOB = "customer-0001", "customer-0002"
SHORT_S, LONG_S = 10, 600
EXPIRED = 4401
LISTED_SITE, OTHER_SITE = "https://app.example.org", "https://evil.example"


def is_refused(phone: GatewayClient) -> None:
    """Asserts that the gateway refuses the phone's credential."""
    assert phone.rows("orders-by-customer", ALICE).status_code == 401


def renewed(watch: OrderSocket, ticket: Frame) -> Frame:
    """Sends a ticket on the socket and reads on until it is answered."""
    watch.send({"type": "auth_refresh", "ticket": ticket["ticket"]})
    while (frame := watch.next())["type"] == "order_status_update":
        continue
    return frame


def read_on(watch: OrderSocket) -> None:
    """Reads until the socket is closed; raises ConnectionClosed."""
    while watch.next():
        continue


def test_an_expired_token_closes_the_socket_that_it_opened(stack: RunningStack, source: OrderSource) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    phone = TokenClient(stack, "alice", SHORT_S)
    with phone.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
        with pytest.raises(ConnectionClosed) as closing:
            read_on(watch)
    eventually(lambda: is_refused(phone), 2)  # the gateway counts in whole seconds, the edge does not

    assert closing.value.rcvd is not None
    assert closing.value.rcvd.code == EXPIRED


@pytest.mark.long
def test_a_renewed_socket_goes_on_without_a_gap(stack: RunningStack, source: OrderSource) -> None:
    order_id = source.place(ALICE, {"item-a": 1}).order_id
    phone = TokenClient(stack, "alice", SHORT_S)
    with phone.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")
        ticket = TokenClient(stack, "alice", LONG_S).ticket()
        answer = renewed(watch, ticket)
        eventually(lambda: is_refused(phone), 2 * SHORT_S)
        source.advance(order_id, OrderStatus.ORDER_STATUS_PAID)
        watch.until_status(order_id, "Paid")

    assert answer["type"] == "authenticated"
    assert scaled(SHORT_S) < answer["expires_in_s"] <= scaled(LONG_S)


def test_a_ticket_of_another_customer_renews_nothing(stack: RunningStack, alice: GatewayClient) -> None:
    ticket = TokenClient(stack, "bob", LONG_S).ticket()
    with alice.open() as watch:
        answer = renewed(watch, ticket)

    assert (answer["type"], answer["error"]["code"]) == ("error", "ticket_refused")


def test_another_customers_keys_are_not_there_on_any_socket(
    source: OrderSource, alice: GatewayClient, bob: GatewayClient
) -> None:
    order_id = source.place(BOB, {"item-a": 1}).order_id
    with bob.watch(order_id) as watch:
        watch.until_status(order_id, "Placed")

    with alice.open(f"/update/orders/{order_id}") as watch:
        by_path = watch.next()
    one = {"sort_from": "x", "sort_to": "y", "limit": 1}
    with alice.open("/v1/stream") as watch:
        watch.send({"watch": [{"id": 1, "store": "orders-by-key", "group": order_id}]})
        by_key = next(frames_with(watch, "current"))
        watch.send({"watch": [{"id": 2, "store": "orders-by-customer", "group": BOB, **one}]})
        by_group = next(frames_with(watch, "ended"))

    assert (by_path["type"], by_path["data"]["status"]) == ("order_status_update", "Unknown")
    assert by_key["id"] == 1
    assert [frame for frame in watch.frames if "rows" in frame] == []
    assert (by_group["id"], by_group["ended"]["code"]) == (2, "forbidden")


def allowed(answer: httpx.Response, name: str) -> set[str]:
    """Returns the words of the header `Access-Control-Allow-{name}`, in lower case."""
    return {word.strip().lower() for word in answer.headers.get(f"Access-Control-Allow-{name}", "").split(",")} - {""}


def test_a_page_of_a_listed_site_gets_a_ticket_and_one_of_another_site_cannot_read_it(stack: RunningStack) -> None:
    phone = TokenClient(stack, "alice", LONG_S)
    preflight = phone.preflight(LISTED_SITE, "/v1/tickets")
    answer = phone.post_from(LISTED_SITE, "/v1/tickets")
    elsewhere = [phone.preflight(OTHER_SITE, "/v1/tickets"), phone.post_from(OTHER_SITE, "/v1/tickets")]

    assert preflight.status_code == 200
    assert "post" in allowed(preflight, "Methods")
    assert {name.lower() for name in phone.headers} <= allowed(preflight, "Headers")
    assert allowed(preflight, "Origin") == allowed(answer, "Origin") == {LISTED_SITE}
    assert answer.json()["ticket"]
    assert [allowed(each, "Origin") for each in elsewhere] == [set(), set()]
