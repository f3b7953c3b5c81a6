"""What a reader who follows keys is told."""

from dataclasses import dataclass

from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2


@dataclass(frozen=True)
class Change:
    """What a key holds as of a position: `state`, or, when it has no value, `absence`."""

    key: state_pb2.StateKey
    position: state_pb2.Position
    state: query_pb2.State | None = None
    absence: query_pb2.Absence | None = None
