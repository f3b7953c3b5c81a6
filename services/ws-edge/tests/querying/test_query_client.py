"""Keys are asked for at their owner, and at the next instance when that fails."""

from collections.abc import AsyncIterator

import grpc
import pytest

from statecast.orders.v1.order_pb2 import Order
from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from ws_edge.errors import MalformedFrameError, RequestError, UnavailableError
from ws_edge.querying.addresses import Addresses
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.questions import question
from ws_edge.states import StoreKey, Version
from ws_edge.stores import SHIPPED, read
from ws_edge.testing.edge import Clock, FakeQueryService

STORE = read(SHIPPED)["orders-by-key"]
KEYS = [StoreKey("orders-by-key", f"order-{n}") for n in range(10)]


@pytest.fixture
async def owner() -> AsyncIterator[FakeQueryService]:
    async with FakeQueryService() as service:
        yield service


@pytest.fixture
async def other() -> AsyncIterator[FakeQueryService]:
    async with FakeQueryService() as service:
        yield service


@pytest.fixture
async def client(owner: FakeQueryService, other: FakeQueryService) -> AsyncIterator[QueryClient]:
    """A client that is configured with the other instance alone, and learns of the owner from it."""
    client = QueryClient(Addresses([other.address], Clock(), 1.0), timeout=30.0, batch_limit=4)
    own_address, other.address = other.address, owner.address
    await client.list_shards()
    other.address = own_address
    yield client
    await client.close()


def fill(service: FakeQueryService) -> None:
    for key in KEYS:
        service.put(key, Order(order_id=key.group))


async def test_the_owner_is_asked_straight_in_batches_within_the_limit(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(owner)
    found = await client.ask(STORE, [question(key) for key in KEYS])

    assert [answer.row.order_id for answer in found if isinstance(answer, Version)] == [key.group for key in KEYS]
    assert owner.calls["BatchGetStates"] == 3
    assert other.calls["BatchGetStates"] == 0


async def test_what_the_caller_has_already_is_not_answered(client: QueryClient, owner: FakeQueryService) -> None:
    fill(owner)
    questions = [question(key) for key in KEYS]
    found = await client.ask(STORE, questions)
    known = [asked.since(answer.position) for asked, answer in zip(questions, found, strict=True) if answer]  # type: ignore[union-attr]
    owner.put(KEYS[3], Order(order_id="newer"))
    again = await client.ask(STORE, known)

    assert [place for place, answer in enumerate(again) if answer is not None] == [3]


async def test_when_the_owner_is_gone_the_next_instance_answers_the_same_call(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(other)
    failures: list[None] = []
    client.on_failure = lambda: failures.append(None)
    await owner.stop()
    found = await client.ask(STORE, [question(key) for key in KEYS])

    assert all(isinstance(answer, Version) and answer.row is not None for answer in found)
    assert failures
    asked_before = owner.calls["BatchGetStates"]
    await client.ask(STORE, [question(KEYS[0])])
    assert owner.calls["BatchGetStates"] == asked_before


async def test_when_nobody_answers_every_key_has_its_error(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    owner.failing = other.failing = grpc.StatusCode.UNAVAILABLE
    found = await client.ask(STORE, [question(key) for key in KEYS])

    assert all(isinstance(answer, UnavailableError) for answer in found)
    with pytest.raises(UnavailableError, match="scripted to fail"):
        await client.list_shards()


async def test_a_slow_instance_is_given_up_in_time(service: FakeQueryService) -> None:
    service.delay = 5.0
    client = QueryClient(Addresses([service.address], Clock(), 1.0), timeout=0.05, batch_limit=10)
    (answer,) = await client.ask(STORE, [question(KEYS[0])])
    await client.close()

    assert isinstance(answer, UnavailableError)


async def test_a_call_that_is_wrong_is_not_tried_elsewhere(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    owner.failing = grpc.StatusCode.INVALID_ARGUMENT
    (answer,) = await client.ask(STORE, [question(KEYS[0])])
    with pytest.raises(MalformedFrameError):
        await client.scan(STORE, ScanStatesRequest(store="orders-by-key", group="g"))

    assert isinstance(answer, RequestError)
    assert not isinstance(answer, UnavailableError)
    assert other.calls["BatchGetStates"] + other.calls["ScanStates"] == 0


async def test_an_instance_that_the_map_does_not_name_any_more_is_let_go(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(owner)
    fill(other)
    await client.ask(STORE, [question(KEYS[0])])
    owner.address = other.address
    await client.list_shards()
    await client.ask(STORE, [question(KEYS[0])])

    assert (owner.calls["BatchGetStates"], other.calls["BatchGetStates"]) == (1, 1)
