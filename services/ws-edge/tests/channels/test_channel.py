"""A channel is decoded from the records of its group, in any order and among other records."""

import pytest

from statecast.push.v1.channel_pb2 import ChannelRecord, ChannelRevision
from ws_edge.channels import CHANNELS
from ws_edge.channels.channel import (
    channel_of,
    check_id,
    new_id,
    revision_key,
    subscription_key,
    subscription_record,
)
from ws_edge.channels.kafka_writer import record_key
from ws_edge.errors import UnknownChannelError
from ws_edge.model.query_specs import QuerySpec, StepSpec, Subject
from ws_edge.model.states import KeyState, Position, RangeKey, StoreKey

ID = "AAAAAAAAAAAAAAAAAAAAAA"
ORDER = StoreKey("orders-by-key", "12345")
MEMBER = StoreKey("orders-by-customer", "customer-0001", "2024-08-28", "order-1")
RANGE = RangeKey("orders-by-customer", "customer-0001", "", "", 0, False)
WINDOW = RANGE._replace(sort_from="2024", sort_to="2025", limit=5, reverse=True)
STEPS = (StepSpec("odds-by-match", "match_id", "", "", 0, False), StepSpec("a", "b", "c", "d", 5, True))
BOARD = QuerySpec("board", RANGE, STEPS)
AT = Position(7, 9)


def head() -> KeyState:
    record = ChannelRecord()
    record.channel.owner = "customer-0001"
    record.channel.expires_at.seconds = 60
    return KeyState(StoreKey(CHANNELS.name, ID), Position(7, 1), record)


def subscription(key: Subject, interval_ms: int | None = None) -> KeyState:
    return KeyState(subscription_key(ID, key), Position(7, 2), subscription_record(key, interval_ms))


def test_a_channel_consists_of_its_head_and_its_subscriptions() -> None:
    revision = KeyState(revision_key(ID), Position(7, 9), ChannelRecord(revision=ChannelRevision()))
    channel = channel_of(ID, [subscription(ORDER, 0), head(), revision, subscription(MEMBER)], AT)

    assert channel is not None
    assert (channel.owner, channel.expires_at, channel.position) == ("customer-0001", 60.0, AT)
    assert channel.subscriptions == {ORDER: 0, MEMBER: None}


def test_a_range_is_kept_beside_keys_with_all_of_its_fields() -> None:
    channel = channel_of(ID, [head(), subscription(RANGE, 0), subscription(WINDOW), subscription(MEMBER)], AT)

    assert channel is not None
    assert channel.subscriptions == {RANGE: 0, WINDOW: None, MEMBER: None}


def test_a_query_is_kept_beside_them_with_all_of_its_steps() -> None:
    channel = channel_of(ID, [head(), subscription(BOARD, 0), subscription(RANGE)], AT)

    assert channel is not None
    assert channel.subscriptions == {BOARD: 0, RANGE: None}


def test_the_record_of_a_query_goes_by_its_name() -> None:
    assert subscription_key(ID, BOARD._replace(first=WINDOW)) == subscription_key(ID, BOARD)
    assert record_key(subscription_key(ID, BOARD)).split(b"\0")[:2] == [ID.encode(), b"query"]


def test_a_record_that_only_a_newer_edge_knows_is_ignored() -> None:
    newer = ChannelRecord.FromString(b"\x7a\x02\x08\x01")  # a message in field 15
    unknown = KeyState(subscription_key(ID, MEMBER), Position(7, 3), newer)
    channel = channel_of(ID, [head(), unknown, subscription(ORDER)], AT)

    assert channel is not None
    assert channel.subscriptions == {ORDER: None}


def test_without_its_head_there_is_no_channel() -> None:
    assert channel_of(ID, [subscription(ORDER)], AT) is None


def test_each_subscription_has_a_record_of_its_own_in_the_channels_group() -> None:
    named = (
        ORDER,
        MEMBER,
        ORDER._replace(group="2"),
        ORDER._replace(store="x"),
        RANGE,
        WINDOW,
        RANGE._replace(limit=1),
        BOARD,
        BOARD._replace(name="other"),
    )
    keys = [subscription_key(ID, key) for key in named]

    assert len(set(keys)) == len(named)
    assert {key.group for key in keys} == {ID}
    assert record_key(keys[0]).split(b"\0")[:2] == [ID.encode(), b"subscription"]
    assert record_key(StoreKey(CHANNELS.name, ID)) == ID.encode()


def test_identifiers_are_unique_and_recognized() -> None:
    first, second = new_id(), new_id()

    assert first != second
    assert check_id(first) == first


@pytest.mark.parametrize("text", ["", "x", ID + "A", ID[:-1] + "\0", ID[:-1] + "é"])
def test_a_malformed_identifier_is_an_unknown_channel(text: str) -> None:
    with pytest.raises(UnknownChannelError):
        check_id(text)
