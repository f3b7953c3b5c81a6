"""A channel is decoded from the records of its group, in any order and among other records."""

import pytest

from statecast.push.v2.channel_pb2 import ChannelRecord
from statecast.push.v2.push_pb2 import NamedWatch, Step, Watch
from ws_edge.channels.channels import channel_of, check_id, check_name, head_key, watch_key
from ws_edge.channels.kafka_writer import record_key
from ws_edge.errors import MalformedFrameError, UnknownChannelError
from ws_edge.model.states import KeyState, Position

ID = "AAAAAAAAAAAAAAAAAAAAAA"
ORDER = Watch(store="orders-by-key", group="12345", interval_ms=0)
STEPS = [Step(store="odds-by-match", group_field="match_id", limit=5)]
BOARD = Watch(store="matches", group="football", sort_from="2024", reverse=True, fields=["a"], steps=STEPS)


def head() -> KeyState:
    record = ChannelRecord()
    record.channel.owner = "customer-0001"
    record.channel.expires_at.seconds = 60
    return KeyState(head_key(ID), Position(7, 1), record)


def named(name: str, watch: Watch) -> KeyState:
    return KeyState(watch_key(ID, name), Position(7, 2), ChannelRecord(watch=NamedWatch(name=name, watch=watch)))


def test_a_channel_consists_of_its_head_and_its_watches_by_name() -> None:
    channel = channel_of(ID, [named("order", ORDER), head(), named("board", BOARD), named("a", ORDER)])

    assert channel is not None
    assert (channel.owner, channel.expires_at) == ("customer-0001", 60.0)
    assert list(channel.watches.items()) == [("a", ORDER), ("board", BOARD), ("order", ORDER)]


@pytest.mark.parametrize("record", [b"\x7a\x02\x08\x01", b"\x12\x00", b"\x1a\x00"])
def test_a_record_of_another_edge_is_ignored(record: bytes) -> None:
    """Field 15 is from a newer edge; fields 2 and 3 are from protocol 1."""
    unknown = KeyState(watch_key(ID, "x"), Position(7, 3), ChannelRecord.FromString(record))
    channel = channel_of(ID, [head(), unknown, named("order", ORDER)])

    assert channel is not None
    assert list(channel.watches) == ["order"]


def test_without_its_head_there_is_no_channel() -> None:
    assert channel_of(ID, [named("order", ORDER)]) is None


def test_each_record_has_a_key_of_its_own_in_the_channels_group() -> None:
    keys = [head_key(ID), watch_key(ID, "a"), watch_key(ID, "b")]

    assert len(set(keys)) == len(keys)
    assert [record_key(key) for key in keys[:2]] == [ID.encode(), f"{ID}\0watch\0a".encode()]


@pytest.mark.parametrize("text", ["", "x", ID + "A", ID[:-1] + "\0", ID[:-1] + "é"])
def test_a_malformed_identifier_is_an_unknown_channel(text: str) -> None:
    with pytest.raises(UnknownChannelError):
        check_id(text)


@pytest.mark.parametrize("name", ["", "a" * 65, "a/b", "a b", "é", "a\n"])
def test_a_name_that_no_path_can_have_is_refused(name: str) -> None:
    with pytest.raises(MalformedFrameError, match="1 to 64 letters"):
        check_name(name)
