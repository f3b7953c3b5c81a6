"""A watch that the query service will never answer ends alone, and the client gets the reason."""

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.one_socket import OneSocket
from testkit.ws_edge.stream import StreamClient, stream_client
from ws_edge.model.states import StoreKey


async def test_a_watch_that_the_query_service_refuses_ends_and_those_beside_it_go_on() -> None:
    refused, good = (StoreKey("orders-by-key", name) for name in ("refused", "good"))
    async with RunningEdge() as edge, stream_client(edge) as client:
        edge.query.refused = frozenset({refused})
        edge.query.put(good, Order(order_id="good", customer_id="customer-0001"))
        for number, interval_ms in enumerate((0, 20)):
            ids = 2 * number + 1, 2 * number + 2
            watches = zip(ids, (refused, good), strict=True)
            await client.say(
                watch=[
                    {"id": each, "store": key.store, "group": key.group, "interval_ms": interval_ms}
                    for each, key in watches
                ]
            )
            await client.until_current(ids[1])
            while ids[0] not in client.ended:
                await client.next()
        await until(lambda: edge.parts.hub.watches == 1)

    assert {each["code"] for each in client.ended.values()} == {"malformed_watch"}
    assert client.ended.keys() == {1, 3}
    assert not any("retry_ms" in each for each in client.ended.values())


async def test_a_watch_of_an_edge_that_does_not_know_its_stores_yet_may_be_asked_for_again() -> None:
    async with OneSocket() as socket:
        client = StreamClient(socket)  # type: ignore[arg-type]  # as far as it is used
        await client.say(watch=[{"id": 1, "store": "orders-by-key", "group": "12345"}])
        while not client.ended:
            await client.next()

    assert client.ended[1]["code"] == "unavailable"
    assert client.ended[1]["retry_ms"] < 5000


async def test_a_step_that_the_query_service_refuses_ends_alone() -> None:
    asked = {"store": "orders-by-customer", "group": "customer-0001"}
    async with RunningEdge() as edge, stream_client(edge) as client:
        for name in ("refused", "good"):
            key = StoreKey("orders-by-customer", "customer-0001", name, name)
            row = Order(order_id=name, customer_id="customer-0001")
            edge.query.put(key, row)
            edge.query.put(StoreKey("orders-by-key", name), row)
        edge.query.refused = frozenset({StoreKey("orders-by-key", "refused")})
        steps = [{"store": "orders-by-key", "group_field": "order_id"}]
        await client.begin({"id": 1, **asked, "steps": steps})

    [ended] = [frame for frame in client.frames if "ended" in frame]
    assert (ended["path"], ended["ended"]["code"]) == (["refused"], "malformed_watch")
    assert len(client.rows[1, "good"]) == 1
    assert len(client.rows[1, ""]) == 2
