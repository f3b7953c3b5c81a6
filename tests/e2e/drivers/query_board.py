"""The rows of a query in two steps, as its client sees them."""

from google.protobuf.message import Message

from drivers.pipeline_checks import Expected, of_group
from drivers.pipeline_models import NUL, canonical_json
from statecast_client.push import PushClient, Step, Watch


class QueryBoard:
    """The rows of a group and those below each of them."""

    def __init__(self, store: str, group: str, limit: int, step: Step, *messages: type[Message]) -> None:
        """`messages` are those of the rows of both steps."""
        self.group = group
        self._store, self._limit, self._step, self._messages = store, limit, step, messages
        self._watch: Watch | None = None

    def begin(self, client: PushClient, interval_ms: int) -> Watch:
        """Begins to watch."""
        steps = [self._step]
        self._watch = client.watch(self._store, self.group, limit=self._limit, steps=steps, interval_ms=interval_ms)
        return self._watch

    @property
    def has_begun(self) -> bool:
        """Whether everything has come once."""
        return self._watch is not None and self._watch.token != ""

    @property
    def shown(self) -> dict[str, bytes]:
        """The rows in `canonical` form, by the keys that lead to them; copied, because another thread adds rows."""
        places = [*self._watch.places.items()] if self._watch else []
        return {
            NUL.join((*path, key)): canonical_json(row.value, self._messages[len(path)])
            for path, place in places
            for key, row in [*place.rows.items()]
        }


def expected_board(first: Expected, step: Expected) -> Expected:
    """Returns the rows that a board must show, where the members of the first step name the groups of the next."""
    board = {}
    for key, row in first.items():
        name = _member(key)
        board[name] = row
        board |= {f"{name}{NUL}{_member(below)}": each for below, each in of_group(step, name).items()}
    return board


def _member(key: str) -> str:
    return key.split(NUL)[-1]
