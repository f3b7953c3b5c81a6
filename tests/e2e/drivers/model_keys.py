"""What stands on a topic in the end: keys as text, and values that can be compared."""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC
from typing import Any

from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Keyed = dict[str, Any]
"""The live records of a keyed topic: the text of the key, and the payload's message."""

Plain = Counter[bytes]
"""The values of a plain topic, in `canonical` form, and how often each stands there."""

NUL = "\0"


def member_key(group: str, sort: str, member: str) -> str:
    """The key of one of many members of a group."""
    return NUL.join((group, sort, member))


def time_sort(time: Timestamp) -> str:
    """The time as UTC with six decimals: 27 characters."""
    return time.ToDatetime(tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def number_sort(number: int) -> str:
    """The number, 0 or more, as 19 digits."""
    return f"{number:019d}"


def canonical(message: Message) -> bytes:
    """The same bytes for equal messages, whoever has encoded them."""
    return message.SerializeToString(deterministic=True)


def plain(messages: Iterable[Message]) -> Plain:
    """The multiset of the messages."""
    return Counter(map(canonical, messages))
