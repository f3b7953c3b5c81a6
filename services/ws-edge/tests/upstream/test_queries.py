"""Queries are encoded once and joined; results name newer, absent and failed keys."""

import pytest

from statecast.orders.v1.order_pb2 import Order
from statecast.query.v1.query_pb2 import KeyResult
from statecast.query.v1.query_service_pb2 import BatchGetStatesRequest, BatchGetStatesResponse
from statecast.state.v1.state_pb2 import Position as PositionProto
from statecast.state.v1.state_pb2 import StateKey
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from ws_edge.errors import (
    ForbiddenError,
    MalformedFrameError,
    RequestError,
    UnavailableError,
    UnknownStoreError,
    UnreadableRowError,
)
from ws_edge.model.questions import Question
from ws_edge.model.states import Position
from ws_edge.upstream.queries import (
    Progress,
    Query,
    RangeResult,
    batch,
    failure_of,
    results,
)

STORE = SHIPPED_STORES["orders-by-key"]
MEMBERS = SHIPPED_STORES["orders-by-customer"]
A, B = Question(STORE, "a"), Question(STORE, "b")


def test_joined_queries_are_one_request() -> None:
    request = BatchGetStatesRequest.FromString(batch(STORE, [Query.of(A), Query.of(B, Position(7, 0))]))

    assert request.store == "orders-by-key"
    assert [key.key.group for key in request.keys] == ["a", "b"]
    assert [key.HasField("after") for key in request.keys] == [False, True]
    assert (request.keys[1].after.epoch, request.keys[1].after.offset) == (7, 0)


def test_a_query_is_kept_while_its_position_stays() -> None:
    query = Query.of(A, Position(7, 1))

    assert query.newer_than(Position(7, 1)) is query
    assert query.newer_than(Position(7, 2)).after == Position(7, 2)
    assert query.newer_than(Position(7, 2)).group == query.group


def test_results_stand_where_their_queries_stand() -> None:
    order = Order(order_id="b", customer_id="customer-0001")
    response = BatchGetStatesResponse()
    state = response.results.add(index=1).state
    state.payload = order.SerializeToString()
    state.position.epoch, state.position.offset = 7, 42
    state.commit_time.seconds = 5
    deleted = response.results.add(index=2).absence
    deleted.deleted, deleted.position.epoch, deleted.position.offset = True, 7, 43
    answers = results([Query.of(A), Query.of(B), Query.of(A)], response, 5000)

    assert answers[0] == Progress()
    assert isinstance(answers[1], RangeResult)
    [row] = answers[1].states
    assert (row.row, row.owner, row.position) == (order, "customer-0001", Position(7, 42))
    assert (row.commit_ns, answers[1].removals) == (5_000_000_000, [])
    assert isinstance(answers[2], RangeResult)
    assert (answers[2].states, answers[2].position) == ([], Position(7, 43))


def test_an_unknown_key_says_since_when_that_is_certain() -> None:
    response = BatchGetStatesResponse()
    certain, uncertain = (response.results.add(index=index).absence for index in (0, 1))
    certain.unchanged_since.epoch, certain.unchanged_since.offset = 7, 3
    uncertain.position.epoch, uncertain.position.offset = 7, 9
    answers = results([Query.of(A), Query.of(B)], response, 5000)

    removals = [removal for each in answers if isinstance(each, RangeResult) for removal in each.removals]
    assert [each.position for each in removals] == [Position(7, 3), Position(7, 9)]


def test_a_row_of_another_message_is_unreadable_and_names_the_key() -> None:
    result = KeyResult(index=0)
    result.state.payload = b"\xff\xff\xff"
    (answer,) = results([Query.of(A)], BatchGetStatesResponse(results=[result]), 5000)

    assert isinstance(answer, RangeResult)
    with pytest.raises(UnreadableRowError, match="orders-by-key/a"):
        answer.states[0].check_readable()


def test_statuses_of_the_query_service_become_the_edges_errors() -> None:
    expected: dict[int, type[RequestError]] = {3: MalformedFrameError, 5: UnknownStoreError, 14: UnavailableError}
    for code, error in expected.items():
        result = KeyResult(index=0)
        result.error.code, result.error.message = code, "the reason"
        (answer,) = results([Query.of(A)], BatchGetStatesResponse(results=[result]), 5000)

        assert isinstance(answer, error)
        assert "the reason" in str(answer)
    assert not isinstance(failure_of(7, ""), ForbiddenError)


def test_keys_and_ranges_are_one_request_and_their_results_stand_where_they_were_asked() -> None:
    quiet, moved = (Question(MEMBERS, group, "1", "2", 5, True) for group in ("quiet", "moved"))
    queries = [Query.of(quiet), Query.of(A), Query.of(moved, Position(7, 3), True)]
    request = BatchGetStatesRequest.FromString(batch(MEMBERS, queries))
    response = BatchGetStatesResponse()
    response.results.add(index=0).state.position.offset = 9
    result = response.ranges.add(index=1, whole=True, more=True, removals_complete=True)
    result.position.epoch, result.position.offset = 7, 9
    result.states.add(payload=Order(order_id="o", customer_id="moved").SerializeToString()).key.member = "o"
    result.removals.add(key=StateKey(group="moved", sort="1", member="p")).absence.position.offset = 8
    answers = results(queries, response, 5000)

    assert [(each.group, each.limit, each.reverse, each.whole) for each in request.ranges] == [
        ("quiet", 5, True, False),
        ("moved", 5, True, True),
    ]
    assert request.ranges[1].after.offset == 3
    assert answers[0] == Progress()
    assert isinstance(answers[1], RangeResult)
    assert answers[1].position.offset == 9
    assert isinstance(answers[2], RangeResult)
    assert (answers[2].after, answers[2].position) == (Position(7, 3), Position(7, 9))
    assert (answers[2].whole, answers[2].more, answers[2].removals_complete) == (True, True, True)
    assert [version.key.member for version in answers[2].states] == ["o"]
    assert [(removal.key.member, removal.position.offset) for removal in answers[2].removals] == [("p", 8)]


def test_what_is_left_out_is_as_far_as_the_partition_that_names_it() -> None:
    named, unnamed = (Query.of(Question(MEMBERS, name, limit=5)) for name in ("alice", "bob"))
    response = BatchGetStatesResponse()
    response.freshness.add(partition=0, current_through=PositionProto(epoch=7, offset=90), keys=[0])
    response.freshness.add(partition=1, current_through=PositionProto(epoch=7, offset=50), ranges=[1])

    answers = results([unnamed, Query.of(A), named], response, 5000)

    assert answers == [Progress(), Progress(Position(7, 90)), Progress(Position(7, 50))]


def test_a_lag_from_the_bound_on_is_that_of_the_partition_of_each_key() -> None:
    response = BatchGetStatesResponse()
    response.results.add(index=1).state.payload = Order(order_id="b").SerializeToString()
    response.freshness.add(partition=0, lag_ms=4999, keys=[0])
    response.freshness.add(partition=1, lag_ms=5000, keys=[1, 2])
    current, changed, unchanged = results([Query.of(A), Query.of(B), Query.of(A)], response, 5000)

    assert isinstance(current, Progress)
    assert isinstance(unchanged, Progress)
    assert (current.lag_ms, unchanged.lag_ms) == (0, 5000)
    assert isinstance(changed, RangeResult)
    assert changed.lag_ms == 5000


def test_a_range_that_fails_is_a_failure() -> None:
    query = Query.of(Question(MEMBERS, "alice", limit=5))
    response = BatchGetStatesResponse()
    response.ranges.add(index=0).error.message = "too many rows"
    (answer,) = results([query], response, 5000)

    assert isinstance(answer, UnavailableError)
