"""Sockets through real uvicorn with a real client: which are opened, their deliveries, and how they end."""

import asyncio
import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from statecast.orders.v1.order_pb2 import Order, OrderStatus
from testkit.ws_edge.edge import RunningEdge, error_of, refusal_of, until
from testkit.ws_edge.stream import stream_client
from ws_edge.model.states import StoreKey

KEY = StoreKey("orders-by-key", "12345")


def order(status: "OrderStatus.ValueType" = OrderStatus.ORDER_STATUS_PLACED, customer: str = "customer-0001") -> Order:
    return Order(order_id=KEY.group, customer_id=customer, status=status)


async def ask(socket: ClientConnection, **more: Any) -> None:
    await socket.send(json.dumps({"type": "order_updates_request", "order_id": KEY.group, **more}))


async def receive(socket: ClientConnection) -> Any:
    async with asyncio.timeout(30):
        return json.loads(await socket.recv())


async def test_an_unknown_order_is_reported_as_unknown_and_then_appears(edge: RunningEdge) -> None:
    edge.query.offset = -1  # a store that holds nothing yet
    async with edge.socket() as socket:
        await ask(socket)
        first = await receive(socket)
        await ask(socket, token=first["token"])
        edge.query.put(KEY, order())
        second = await receive(socket)

    assert [frame["data"]["status"] for frame in (first, second)] == ["Unknown", "Placed"]


async def test_many_sockets_on_one_key_make_one_read_per_tick(edge: RunningEdge) -> None:
    edge.query.put(KEY, order())
    sockets = [await edge.socket() for _ in range(20)]
    for socket in sockets:
        await ask(socket)
    assert all([(await receive(socket))["data"]["status"] == "Placed" for socket in sockets])
    reads_before, calls_before = edge.query.asked[KEY], edge.query.calls["BatchGetStates"]
    await until(lambda: edge.query.asked[KEY] >= reads_before + 10)

    # The keys of a call that has begun may not be counted yet.
    assert edge.query.calls["BatchGetStates"] - calls_before <= edge.query.asked[KEY] - reads_before + 1
    assert edge.parts.hub.watches == 1
    for socket in sockets:
        await socket.close()
    await until(lambda: edge.parts.hub.watches == 0)


async def test_another_customers_order_is_unknown_until_it_is_the_consumers_own(edge: RunningEdge) -> None:
    edge.query.put(KEY, order(OrderStatus.ORDER_STATUS_PAID))
    async with edge.socket(consumer="customer-0002") as socket:
        await ask(socket)
        first = await receive(socket)
        edge.query.put(KEY, order(customer="customer-0002"))
        second = await receive(socket)

    assert [frame["data"]["status"] for frame in (first, second)] == ["Unknown", "Placed"]


async def test_a_row_that_changes_its_owner_is_deleted_for_the_one_before(edge: RunningEdge) -> None:
    edge.query.put(KEY, order())
    async with edge.socket() as socket:
        await ask(socket)
        await receive(socket)
        edge.query.put(KEY, order(customer="customer-0002"))
        frame = await receive(socket)

    assert frame["data"] == {
        "order_id": KEY.group,
        "status": "Deleted",
        "estimated_delivery": "",
        "tracking_number": "",
    }


async def test_a_wrong_frame_is_answered_and_the_socket_goes_on(edge: RunningEdge) -> None:
    edge.query.put(KEY, order())
    async with edge.socket() as socket:
        await socket.send("{nonsense")
        await socket.send(b"binary")
        errors = [await receive(socket), await receive(socket)]
        await ask(socket)
        frame = await receive(socket)

    assert [error["error"]["code"] for error in errors] == ["malformed_frame"] * 2
    assert frame["data"]["status"] == "Placed"


@pytest.mark.parametrize(
    ("path", "headers", "status", "code"),
    [
        ("/update/orders", {"X-Gateway-Secret": "wrong"}, 403, "gateway_required"),
        ("/update/orders", {"X-Consumer-Custom-ID": ""}, 403, "gateway_required"),
        ("/update/elsewhere", {}, 404, "unknown_path"),
        ("/update/orders/1?token=a&token=b", {}, 400, "malformed_frame"),
        ("/update/orders/1?interval_ms=soon", {}, 400, "malformed_frame"),
        ("/update/orders/1?interval_ms=-5", {}, 400, "malformed_frame"),
        ("/update/orders/1?repeat=often", {}, 400, "malformed_frame"),
        ("/update/orders/1?repeat=true&interval_ms=0", {}, 400, "malformed_frame"),
        ("/update/orders/1?interval_ms=1&interval_ms=2", {}, 400, "malformed_frame"),
    ],
)
async def test_a_socket_that_cannot_be_opened_is_refused_with_its_reason(
    edge: RunningEdge, path: str, headers: dict[str, str], status: int, code: str
) -> None:
    connecting = edge.socket(path)
    connecting.additional_headers = {**edge.headers(), **headers}
    refusal = await refusal_of(connecting)

    assert (refusal.status_code, error_of(refusal)) == (status, code)


async def test_more_sockets_or_subscriptions_than_allowed_are_refused() -> None:
    async with (
        RunningEdge(max_sockets=1, max_watches=1) as edge,
        edge.socket() as socket,
    ):
        refusal = await refusal_of(edge.socket())
        await ask(socket)
        first = await receive(socket)
        await socket.send(json.dumps({"type": "order_updates_request", "order_id": "another"}))
        second = await receive(socket)

    assert refusal.status_code == 503
    assert first["data"]["status"] == "Unknown"
    assert (second["error"]["code"], second["error"]["order_id"]) == ("too_many_watches", "another")


async def test_while_the_query_service_is_down_sockets_stay_and_go_on_when_it_is_back() -> None:
    async with RunningEdge() as edge:
        edge.query.put(KEY, order())
        async with edge.socket() as watching, edge.socket() as waiting:
            await ask(watching)
            await receive(watching)
            address = edge.query.address
            await edge.query.stop()
            await until(lambda: edge.parts.shard_watch.reason is not None)
            await waiting.send(json.dumps({"type": "order_updates_request", "order_id": "other"}))
            edge.query.put(KEY, order(OrderStatus.ORDER_STATUS_PAID))
            await edge.query.start(address)
            frames = [await receive(watching), await receive(waiting)]

    assert [frame["data"]["status"] for frame in frames] == ["Paid", "Unknown"]


async def test_a_drain_announces_the_close_of_each_socket_closes_it_then_and_refuses_new_ones() -> None:
    async with RunningEdge(sockets_per_s=50) as edge:
        sockets = [await edge.socket() for _ in range(3)]
        drain = asyncio.create_task(edge.parts.sockets.drain(0.05, 60.0))
        hints = [await receive(socket) for socket in sockets]
        for socket in sockets:
            with pytest.raises(ConnectionClosed) as closing:
                await socket.recv()
            assert closing.value.rcvd is not None
            assert closing.value.rcvd.code == 1012
        await drain
        refusal = await refusal_of(edge.socket())

    assert hints == [{"type": "reconnect", "delay_ms": delay_ms} for delay_ms in (50, 70, 90)]
    assert refusal.status_code == 503


async def test_a_stream_goes_on_during_a_drain_until_it_is_closed(edge: RunningEdge) -> None:
    edge.query.put(KEY, Order(order_id=KEY.group, customer_id="customer-0001"))
    async with stream_client(edge) as client:
        drain = asyncio.create_task(edge.parts.sockets.drain(3600, 0))
        hint = await client.next()
        await client.begin({"id": 1, "store": KEY.store, "group": KEY.group})
        drain.cancel()

    assert hint == {"reconnect": {"delay_ms": 3_600_000}}
    assert client.rows[1, ""][""]["order_id"] == KEY.group
