"""Keys, and the changes that a reader who watches them gets."""

from dataclasses import dataclass

from statecast.query.v1 import query_pb2
from statecast.state.v1 import state_pb2
from statecast_client.errors import InvalidError

KeyParts = str | tuple[str, str, str] | state_pb2.StateKey


@dataclass(frozen=True)
class Change:
    """The value of a key as of a position: `state`, or `absence` when it has none."""

    key: state_pb2.StateKey
    position: state_pb2.Position
    state: query_pb2.State | None = None
    absence: query_pb2.Absence | None = None

    @staticmethod
    def of(key: state_pb2.StateKey, result: query_pb2.KeyResult) -> "Change":
        """Returns the change that a result without an error brings."""
        if result.HasField("state"):
            return Change(key, result.state.position, state=result.state)
        return Change(key, result.absence.position, absence=result.absence)


def key_of(parts: KeyParts) -> state_pb2.StateKey:
    """Returns the key of its parts. Raises InvalidError for a text that is not Unicode."""
    if isinstance(parts, state_pb2.StateKey):
        return parts
    group, sort, member = (parts, "", "") if isinstance(parts, str) else parts
    try:
        return state_pb2.StateKey(group=group, sort=sort, member=member)
    except UnicodeEncodeError as error:
        raise not_unicode(error) from error


def not_unicode(error: UnicodeEncodeError) -> InvalidError:
    """Returns the error of a text with half of a surrogate pair, as a command line has for bytes that are not UTF-8."""
    return InvalidError(f"{error.object!r} is not Unicode, as all keys are: pass it as UTF-8")
