"""What a reader of a keyed topic holds in the end, by the fence that the contract gives it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from drivers.model_keys import NUL
from drivers.topic import Record
from statecast.state.v1.state_pb2 import StateRecord

TOMBSTONE_HEADER = "statecast-state-record"


@dataclass
class KeyedTopic:
    """`live`: the payload under each key; `partitions`: where the records of each group stand."""

    live: dict[str, bytes] = field(default_factory=dict)
    partitions: dict[str, set[int]] = field(default_factory=dict)


def materialize(records: Iterable[Record]) -> KeyedTopic:
    """Applies a record only when its (epoch, sequence) is higher than what is held of its key."""
    topic = KeyedTopic()
    held: dict[str, tuple[int, int]] = {}
    for record in records:
        key = record.key.decode()
        state = StateRecord.FromString(record.headers[TOMBSTONE_HEADER] if record.value is None else record.value)
        topic.partitions.setdefault(key.split(NUL)[0], set()).add(record.partition)
        version = (state.epoch, state.sequence)
        if key in held and version <= held[key]:
            continue
        held[key] = version
        if record.value is None:
            topic.live.pop(key, None)
        else:
            topic.live[key] = state.payload
    return topic
