"""One suite for older versions on every kind of lookup: local, remote on the internal service, and by way of a peer."""

import pytest

from query_service.cluster.view import View
from query_service.errors import AbsentError, BeforeHistoryError, BoundsError, InvalidRequestError, NoHistoryError
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.query_service import FakeRecord, MessageReads, encoded_state, soon, store_definition, tombstone

STORE = "orders-by-key"
KEY = state_pb2.StateKey(group="order-1")
BEGAN = 1_700_000_000
HOW_TO = r"add, for example, `history: \{versions: 20\}`"


@pytest.fixture
def store_fields() -> dict[str, object]:
    return {"history": {"versions": 5}}


def apply(view: View, *payloads: bytes | None) -> None:
    """Applies versions of order-1, one a second; None deletes it."""
    host = view.replicas[STORE, partition_of("order-1", 4)]
    first = host.store.next_offset
    for offset, payload in enumerate(payloads, start=first):
        if payload is None:
            record = tombstone("order-1", offset + 1, offset)
        else:
            record = FakeRecord(b"order-1", encoded_state(offset + 1, payload, seconds=BEGAN + offset), offset)
        host.apply([record], offset + 1)


def get(seconds: int) -> query.GetStateRequest:
    request = query.GetStateRequest(store=STORE, key=KEY)
    request.as_of.seconds = seconds
    return request


def versions(**fields: int | str) -> query.ListVersionsRequest:
    return query.ListVersionsRequest(store=STORE, key=KEY, **fields)  # type: ignore[arg-type]


async def test_the_versions_of_a_key_come_newest_first(lookup: MessageReads, serving_view: View) -> None:
    apply(serving_view, b"placed", b"paid", b"sent")
    answer = await lookup.versions(versions(page_size=10), soon())

    assert [version.payload for version in answer.versions] == [b"sent", b"paid", b"placed"]
    assert [version.position.offset for version in answer.versions] == [2, 1, 0]
    assert [version.commit_time.seconds - BEGAN for version in answer.versions] == [2, 1, 0]
    assert answer.next_page_token == ""
    assert answer.freshness.answered_by == "query-1"
    assert answer.freshness.current_through.offset == 2


async def test_a_deletion_is_a_version(lookup: MessageReads, serving_view: View) -> None:
    apply(serving_view, b"placed", None, b"again")
    answer = await lookup.versions(versions(page_size=10), soon())

    assert [(version.deleted, version.payload) for version in answer.versions] == [
        (False, b"again"),
        (True, b""),
        (False, b"placed"),
    ]


async def test_pages_of_versions_repeat_and_miss_none_while_new_ones_come(
    lookup: MessageReads, serving_view: View
) -> None:
    apply(serving_view, b"1", b"2", b"3")
    first = await lookup.versions(versions(page_size=2), soon())
    apply(serving_view, b"4")
    second = await lookup.versions(versions(page_size=2, page_token=first.next_page_token), soon())

    assert [version.payload for version in [*first.versions, *second.versions]] == [b"3", b"2", b"1"]
    assert second.next_page_token == ""


async def test_a_value_is_answered_as_it_was_at_a_time(lookup: MessageReads, serving_view: View) -> None:
    apply(serving_view, b"placed", b"paid", b"sent")
    payloads = [(await lookup.get(get(BEGAN + second), soon())).state.payload for second in (0, 1, 2, 99)]

    assert payloads == [b"placed", b"paid", b"sent", b"sent"]


async def test_a_key_that_was_deleted_then_was_absent(lookup: MessageReads, serving_view: View) -> None:
    apply(serving_view, b"placed", None)
    with pytest.raises(AbsentError) as absent:
        await lookup.get(get(BEGAN + 1), soon())

    assert absent.value.absence.deleted
    assert absent.value.absence.position.offset == 1


async def test_a_time_before_the_oldest_version_is_refused_with_that_time(
    lookup: MessageReads, serving_view: View
) -> None:
    apply(serving_view, *(b"%d" % number for number in range(9)))
    with pytest.raises(BeforeHistoryError, match="2023-11-14T22:13:23Z: ask for that time"):
        await lookup.get(get(BEGAN + 2), soon())


async def test_an_unknown_key_has_no_versions(lookup: MessageReads, serving_view: View) -> None:
    with pytest.raises(AbsentError):
        await lookup.versions(versions(), soon())
    with pytest.raises(AbsentError):
        await lookup.get(get(BEGAN), soon())


async def test_a_token_of_another_key_is_refused(lookup: MessageReads, serving_view: View) -> None:
    apply(serving_view, b"1", b"2")
    token = (await lookup.versions(versions(page_size=1), soon())).next_page_token
    other = versions(page_token=token)
    other.key.sort, other.key.member = "1", "m"

    with pytest.raises(InvalidRequestError, match="another key"):
        await lookup.versions(other, soon())


async def test_bounds_hold_versions_back_too(lookup: MessageReads, serving_view: View) -> None:
    apply(serving_view, b"1")
    request = versions()
    request.bounds.CopyFrom(query_pb2.Bounds(at_least=state_pb2.Position(epoch=77, offset=0)))

    assert len((await lookup.versions(request, soon())).versions) == 1


async def test_a_store_without_history_says_how_to_turn_it_on(lookup: MessageReads, serving_view: View) -> None:
    serving_view.stores[STORE] = store_definition(STORE)
    for host in serving_view.replicas.values():
        host.definition = serving_view.stores[STORE]
    apply(serving_view, b"placed")

    refused = (NoHistoryError, BoundsError)  # a peer's refusal has its status and its text
    with pytest.raises(refused, match=HOW_TO):
        await lookup.versions(versions(), soon())
    with pytest.raises(refused, match=HOW_TO):
        await lookup.get(get(BEGAN), soon())


async def test_the_oldest_version_of_the_first_years_is_named_with_four_digits(
    lookup: MessageReads, serving_view: View
) -> None:
    host = serving_view.replicas[STORE, partition_of("order-1", 4)]
    host.apply([FakeRecord(b"order-1", encoded_state(1, b"placed", seconds=-62_135_596_800), 0)], 1)

    with pytest.raises(BeforeHistoryError, match="is of 0001-01-01T00:00:00Z"):
        await lookup.get(get(-62_135_596_801), soon())
