"""Keys are requested from their owner, and from the next instance when the owner fails."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import grpc
import pytest
import structlog

from statecast.orders.v1.order_pb2 import Order
from statecast.query.v1.query_service_pb2 import ScanStatesResponse
from statecast.state.v1.state_pb2 import StateKey
from testkit.turns import counted_turns
from testkit.ws_edge.edge import Clock, FakeQueryService, until
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from ws_edge.errors import MalformedFrameError, RequestError, UnavailableError
from ws_edge.model.questions import Question
from ws_edge.model.states import Position, StoreKey
from ws_edge.upstream.queries import Page, Progress, Query, RangeResult, Result, Scan
from ws_edge.upstream.query_client import QueryClient, ShardWatch, decoded

STORE = SHIPPED_STORES["orders-by-key"]
QUESTIONS = [Question(STORE, f"order-{n}") for n in range(10)]
KEYS = [StoreKey(STORE.name, each.group) for each in QUESTIONS]


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
    """A client that is configured with the other instance only, and learns the owner from it."""
    client = QueryClient([other.address], timeout=30.0, batch_limit=4, clock=Clock())
    own_address, other.address = other.address, owner.address
    await client.list_shards()
    other.address = own_address
    yield client
    await client.close()


def fill(service: FakeQueryService) -> None:
    for key in KEYS:
        service.put(key, Order(order_id=key.group))


def orders(answers: Iterable[Result | Page | BaseException]) -> list[str]:
    """Returns the ids of orders in answers that have rows."""
    rows = [row for each in answers if isinstance(each, RangeResult | Page) for row in each.states]
    return [row.row.order_id for row in rows if not row.is_unreadable]


async def test_the_owner_is_asked_straight(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(owner)
    answers = await client.poll(STORE, [Query.of(each) for each in QUESTIONS])

    assert orders(answers) == [key.group for key in KEYS]
    assert owner.calls["BatchGetStates"] == 1
    assert other.calls["BatchGetStates"] == 0


async def test_a_key_without_a_newer_value_has_no_result(client: QueryClient, owner: FakeQueryService) -> None:
    fill(owner)
    queries = [Query.of(each) for each in QUESTIONS]
    answers = await client.poll(STORE, queries)
    positions = [answer.position for answer in answers if isinstance(answer, RangeResult)]
    known = [query.newer_than(position) for query, position in zip(queries, positions, strict=True)]
    owner.put(KEYS[3], Order(order_id="newer"))
    again = await client.poll(STORE, known)

    assert [place for place, answer in enumerate(again) if not isinstance(answer, Progress)] == [3]


async def test_when_the_owner_is_gone_the_next_instance_answers_the_same_call(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(other)
    await owner.stop()
    answers = await client.poll(STORE, [Query.of(each) for each in QUESTIONS])

    assert len(orders(answers)) == len(KEYS)
    assert client.failed.is_set()
    calls_before = owner.calls["BatchGetStates"]
    await client.poll(STORE, [Query.of(QUESTIONS[0])])
    assert owner.calls["BatchGetStates"] == calls_before


async def test_when_no_instance_answers_every_key_has_its_error(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    owner.failing = other.failing = grpc.StatusCode.UNAVAILABLE
    answers = await client.poll(STORE, [Query.of(each) for each in QUESTIONS])

    assert all(isinstance(answer, UnavailableError) for answer in answers)
    with pytest.raises(UnavailableError, match="scripted to fail"):
        await client.list_shards()


async def test_lookups_at_the_same_time_share_a_batch_for_each_owner(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(owner)
    asked = *QUESTIONS[:3], Question(STORE, "nobody")
    alone = [await client.get(each) for each in asked]
    assert owner.calls["BatchGetStates"] == 4
    together = await asyncio.gather(*(client.get(each) for each in asked))

    assert orders(together) == orders(alone) == [each.group for each in asked[:3]]
    assert [page.position for page in together] == [page.position for page in alone]
    assert owner.calls["BatchGetStates"] == 5
    assert other.calls["BatchGetStates"] == 0


async def test_a_row_that_cannot_be_read_spoils_no_lookup_beside_it(
    client: QueryClient, owner: FakeQueryService
) -> None:
    fill(owner)
    owner.held[KEYS[0]].payload = b"\xff"  # type: ignore[union-attr]
    answers = await asyncio.gather(*(client.get(each) for each in QUESTIONS[:4]), return_exceptions=True)

    assert isinstance(answers[0], Page)
    assert answers[0].states[0].is_unreadable
    assert orders(answers[1:]) == ["order-1", "order-2", "order-3"]


async def test_a_key_that_is_refused_costs_those_asked_with_it_a_few_calls(service: FakeQueryService) -> None:
    keys = [StoreKey(STORE.name, f"order-{n}") for n in range(64)]
    for key in keys:
        service.put(key, Order(order_id=key.group))
    service.refused = frozenset({keys[40]})
    client = QueryClient([service.address], timeout=30.0, batch_limit=64)
    await client.list_shards()
    answers = await asyncio.gather(*(client.get(Question(STORE, key.group)) for key in keys), return_exceptions=True)
    await client.close()

    assert [key for key, answer in zip(keys, answers, strict=True) if isinstance(answer, Exception)] == [keys[40]]
    assert isinstance(answers[40], MalformedFrameError)
    assert service.calls["BatchGetStates"] == 13, "the whole, and two halves six times"


async def test_lookups_at_the_same_time_have_each_an_error_when_no_instance_answers(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    owner.failing = other.failing = grpc.StatusCode.UNAVAILABLE
    answers = await asyncio.gather(*(client.get(each) for each in QUESTIONS[:3]), return_exceptions=True)

    assert [type(answer) for answer in answers] == [UnavailableError] * 3
    assert len({id(answer) for answer in answers}) == 3


async def test_a_caller_that_goes_away_leaves_the_lookups_beside_it_alone(
    client: QueryClient, owner: FakeQueryService
) -> None:
    fill(owner)
    tasks = [asyncio.create_task(client.get(each)) for each in QUESTIONS[:3]]
    await asyncio.sleep(0)
    tasks[0].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(answers[0], asyncio.CancelledError)
    assert orders(answers) == ["order-1", "order-2"]


async def test_a_slow_instance_is_given_up_after_the_timeout(service: FakeQueryService) -> None:
    service.delay = 5.0
    client = QueryClient([service.address], timeout=0.05, batch_limit=10, clock=Clock())
    (answer,) = await client.poll(STORE, [Query.of(QUESTIONS[0])])
    await client.close()

    assert isinstance(answer, UnavailableError)


async def test_a_call_that_is_wrong_is_not_tried_elsewhere(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    owner.failing = grpc.StatusCode.INVALID_ARGUMENT
    (answer,) = await client.poll(STORE, [Query.of(QUESTIONS[0])])
    with pytest.raises(MalformedFrameError):
        await client.scan(STORE, Scan("g"))

    assert isinstance(answer, RequestError)
    assert not isinstance(answer, UnavailableError)
    assert other.calls["BatchGetStates"] + other.calls["ScanStates"] == 0


async def test_the_connection_to_an_instance_that_left_the_map_is_closed(
    client: QueryClient, owner: FakeQueryService, other: FakeQueryService
) -> None:
    fill(owner)
    fill(other)
    await client.poll(STORE, [Query.of(QUESTIONS[0])])
    owner.address = other.address
    await client.refresh()
    await client.poll(STORE, [Query.of(QUESTIONS[0])])

    assert (owner.calls["BatchGetStates"], other.calls["BatchGetStates"]) == (1, 1)


@pytest.mark.parametrize("has_crc32", [True, False])
async def test_a_range_follows_the_partition_that_answered_also_when_the_map_is_of_another_generation(
    service: FakeQueryService, has_crc32: bool
) -> None:
    """Else its progress is another partition's, and the writes to the range up to there are never told."""
    members = SHIPPED_STORES["orders-by-customer"]
    client = QueryClient([service.address], timeout=30.0, batch_limit=10)
    service.has_crc32 = has_crc32
    await client.list_shards()
    alice = Question(members, "alice", limit=5)
    of_the_map, service.partitions = service.partition_of("alice"), 9
    service.offset, service.ahead = 5, {of_the_map: 50}
    (progress,) = await client.poll(members, [Query.of(alice, Position(7, 3))])
    order = StoreKey("orders-by-customer", "alice", "1", "order-1")
    service.put(order, Order(order_id="order-1", customer_id="alice"))
    assert isinstance(progress, Progress)
    (changed,) = await client.poll(members, [Query.of(alice, progress.position)])
    await client.close()

    assert service.partition_of("alice") not in service.ahead
    assert progress.position == Position(7, 5)
    assert isinstance(changed, RangeResult)
    assert [row.key for row in changed.states] == [order]


async def test_a_failure_is_noticed_at_once_and_recovery_soon(service: FakeQueryService) -> None:
    service.failing = grpc.StatusCode.UNAVAILABLE
    client = QueryClient([service.address], timeout=30.0, batch_limit=10, backoff_s=0.0)
    watch = ShardWatch(client, 3600.0, lambda _: None, lambda: None)
    assert watch.reason == "the query service has not answered yet"

    task = asyncio.create_task(watch.run())
    await until(lambda: "scripted to fail" in str(watch.reason))

    service.failing = None
    await until(lambda: watch.reason is None)

    calls = service.calls["ListShards"]
    client.failed.set()
    await until(lambda: service.calls["ListShards"] > calls)

    task.cancel()
    await client.close()


async def test_without_a_store_to_serve_the_query_service_is_not_used(service: FakeQueryService) -> None:
    client = QueryClient([service.address], timeout=30.0, batch_limit=10)
    taken = list[int]()
    watch = ShardWatch(client, 0.01, lambda listing: taken.append(len(listing.stores)), lambda: "nothing is readable")
    task = asyncio.create_task(watch.run())
    await until(lambda: watch.reason == "nothing is readable")

    assert taken
    task.cancel()
    await client.close()


async def test_a_watched_key_that_is_refused_is_refused_alone(service: FakeQueryService) -> None:
    service.refused = frozenset({KEYS[3]})
    client = QueryClient([service.address], timeout=30.0, batch_limit=1000)
    queries = [Query.of(each) for each in QUESTIONS]
    held = await client.long_poll(STORE, service.address, queries, 30.0)
    polled = await client.poll(STORE, queries)
    await client.close()

    for answers in (held, polled):
        refused = [place for place, answer in enumerate(answers) if isinstance(answer, MalformedFrameError)]
        assert refused == [3]
        assert not any(isinstance(answer, UnavailableError) for answer in answers)


@pytest.mark.parametrize(
    "status", ["NOT_FOUND", "INVALID_ARGUMENT", "PERMISSION_DENIED", "UNIMPLEMENTED", "FAILED_PRECONDITION"]
)
async def test_the_log_says_once_why_a_store_is_not_read(service: FakeQueryService, status: str) -> None:
    service.failing = grpc.StatusCode[status]
    client = QueryClient([service.address], timeout=30.0, batch_limit=1000)
    with structlog.testing.capture_logs() as logs:
        for _ in "12":
            await client.poll(STORE, [Query.of(each) for each in QUESTIONS[:2]])
    await client.close()

    [said] = [each for each in logs if each["event"] == "query_declined"]
    assert (said["log_level"], said["store"]) == ("error", STORE.name)
    assert "scripted to fail" in said["reason"]


async def test_others_get_their_turns_while_a_page_is_decoded() -> None:
    response = ScanStatesResponse()
    for number in range(1000):
        response.states.add(key=StateKey(group="alice", member=str(number)), payload=Order().SerializeToString())
    async with counted_turns() as turns:
        states = await decoded(STORE, response)

    assert [state.key.member for state in states] == [state.key.member for state in response.states]
    assert turns.count >= 10
