"""A consumer with revoked access is refused, and its open sockets are closed."""

import asyncio
import json

import pytest
import structlog.testing

from statecast.orders.v1.order_pb2 import Order
from testkit.waiting import scaled
from testkit.ws_edge.edge import RunningEdge, error_of, refusal_of, until
from testkit.ws_edge.fake_query_service import FakeWriter
from ws_edge.auth.gateway import CLOCK_LEEWAY_S
from ws_edge.channels.revocations import RevocationLog, revocation_key
from ws_edge.model.states import StoreKey

KEY = StoreKey("orders-by-key", "12345")
ALICE = "customer-0001"


@pytest.fixture
def edge(keeping_edge: RunningEdge) -> RunningEdge:
    """All calls here go to an edge with channels and revocation."""
    return keeping_edge


def log_of(edge: RunningEdge) -> RevocationLog:
    return RevocationLog(FakeWriter(edge.query), edge.wall_clock)


async def test_all_sockets_of_the_consumer_are_closed_and_those_of_others_go_on(edge: RunningEdge) -> None:
    edge.query.put(KEY, Order(order_id="12345", customer_id="customer-0002"))
    async with edge.socket() as one, edge.socket("/v1/stream") as two, edge.socket(consumer="customer-0002") as bob:
        await log_of(edge).revoke(ALICE)
        codes = []
        for socket in (one, two):
            await socket.wait_closed()
            codes.append(socket.close_code)
        await bob.send(json.dumps({"type": "order_updates_request", "order_id": "12345"}))
        frame = json.loads(await bob.recv())

    assert codes == [4403, 4403]
    assert frame["data"]["order_id"] == "12345"


async def test_a_socket_that_is_not_read_delays_the_end_of_no_other(edge: RunningEdge) -> None:
    edge.query.put(KEY, Order(order_id="12345", customer_id=ALICE, tracking_number="x" * 3_000_000))
    async with edge.socket("/update/orders/12345") as stuck, edge.socket("/v1/stream") as reading:
        stuck.transport.pause_reading()
        await until(lambda: edge.parts.metrics.frames.sent == 1)
        await log_of(edge).revoke(ALICE)
        async with asyncio.timeout(scaled(5)):
            await reading.wait_closed()
        stuck.transport.abort()

    assert reading.close_code == 4403


async def test_a_revoked_consumer_is_refused_until_it_is_lifted(edge: RunningEdge) -> None:
    log = log_of(edge)
    await log.revoke(ALICE)
    refusal = await refusal_of(edge.socket())
    await log.lift(ALICE)
    async with edge.socket() as socket:
        await socket.send("{}")
        answer = json.loads(await socket.recv())

    assert refusal.status_code == 403
    assert error_of(refusal) == "revoked"
    assert answer["error"]["code"] == "malformed_frame"


async def test_many_sockets_of_a_consumer_watch_one_key_and_none_when_they_are_closed(edge: RunningEdge) -> None:
    async with edge.socket(), edge.socket(), edge.socket(consumer="customer-0002"):
        keys = edge.parts.hub.watches
    await until(lambda: edge.parts.hub.watches == 0)

    assert keys == 2


async def test_while_the_query_service_is_silent_new_sockets_are_refused_and_open_ones_stay() -> None:
    async with (
        RunningEdge(kafka=True, revocation_timeout_ms=300, query_timeout_ms=20_000) as edge,
        edge.socket() as held,
    ):
        edge.query.delay = 10.0
        refusal = await refusal_of(edge.socket(consumer="customer-0002"))
        edge.query.delay = 0.0
        await held.send("{}")
        answer = json.loads(await held.recv())

    assert refusal.status_code == 503
    assert answer["error"]["code"] == "malformed_frame"


async def test_a_replica_that_lags_does_not_say_whether_access_holds() -> None:
    """It may have missed the revocation: who is new is refused, and let in once a replica is current."""
    async with RunningEdge(kafka=True, revocation_timeout_ms=300, revocation_lag_ms=60_000) as edge:
        edge.query.lag_ms = 3_600_000
        refusal = await refusal_of(edge.socket())
        async with edge.client() as client:
            refused = (await client.get("/v1/consumer")).status_code
            edge.query.lag_ms = 59_000
            accepted = (await client.get("/v1/consumer")).status_code
        async with edge.socket() as socket:
            await socket.send("{}")
            answer = json.loads(await socket.recv())

    assert refusal.status_code == refused == 503
    assert accepted == 200
    assert answer["error"]["code"] == "malformed_frame"


async def test_an_open_socket_does_not_say_whether_access_still_holds() -> None:
    """Its consumer may have been revoked since the edge last read: the consumer is refused like any other."""
    async with RunningEdge(kafka=True, revocation_lag_ms=60_000) as edge, edge.socket(), edge.client() as client:
        edge.query.lag_ms = 3_600_000
        await until(lambda: edge.metric("failed_keys_total") > 0)
        refusal = await refusal_of(edge.socket())
        refused = (await client.post("/v1/tickets")).status_code
        edge.query.lag_ms = 0
        accepted = (await client.post("/v1/tickets")).status_code
        async with edge.socket():
            pass

    assert refusal.status_code == refused == 503
    assert accepted == 200


async def test_without_kafka_no_revocation_is_looked_up() -> None:
    async with RunningEdge() as edge, edge.socket():
        assert edge.query.asked[revocation_key(ALICE)] == 0


async def test_a_token_that_was_issued_after_the_revocation_is_accepted(edge: RunningEdge) -> None:
    now = edge.wall_clock.now
    await log_of(edge).revoke(ALICE)
    edge.wall_clock.now += CLOCK_LEEWAY_S + 1
    async with edge.socket(headers=edge.headers(issued_at=now + CLOCK_LEEWAY_S + 1)) as socket:
        await socket.send("{}")
        answer = json.loads(await socket.recv())
    refusal = await refusal_of(edge.socket(headers=edge.headers(issued_at=now + CLOCK_LEEWAY_S)))

    assert answer["error"]["code"] == "malformed_frame"
    assert refusal.status_code == 403


async def test_a_token_of_a_clock_that_is_ahead_does_not_survive_and_the_log_says_who_was_hit(
    edge: RunningEdge,
) -> None:
    issued_at = edge.wall_clock.now + CLOCK_LEEWAY_S
    with structlog.testing.capture_logs() as logs:
        async with edge.socket(headers=edge.headers(issued_at=issued_at)) as socket:
            await log_of(edge).revoke(ALICE)
            await socket.wait_closed()

    assert socket.close_code == 4403
    [line] = [line for line in logs if line["event"] == "consumer_revoked"]
    assert (line["consumer"], line["sockets"]) == (ALICE, 1)
