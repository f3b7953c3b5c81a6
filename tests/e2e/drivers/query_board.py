"""What somebody sees of a query in two steps, who applies all that comes."""

from dataclasses import dataclass, field

from drivers.pipeline_checks import Expected, of_group
from drivers.pipeline_models import NUL, canonical_row
from statecast.push.v1.query_pb2 import QueryStep
from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged
from statecast_client.push import QueryUpdate, name_of_row


@dataclass
class QueryBoard:
    """The rows of the range and those below each of them, in `canonical` form, by the names that lead to them."""

    first: Range
    step: QueryStep
    shown: dict[str, bytes] = field(default_factory=dict)
    has_begun: bool = False

    def apply(self, update: QueryUpdate) -> None:
        """Takes an update as the client hands it out."""
        self.has_begun = True
        path, event = update
        if not isinstance(event, RangeChanged):
            self._drop_below(path)
            return
        row = (*path, name_of_row(event))
        if event.change == MemberChange.MEMBER_CHANGE_LEFT:
            self._drop_below(row)
            self.shown.pop(NUL.join(row), None)
        else:
            self.shown[NUL.join(row)] = canonical_row(event.row)

    def _drop_below(self, path: tuple[str, ...]) -> None:
        below = "".join(f"{name}{NUL}" for name in path)
        for row in [each for each in self.shown if each.startswith(below)]:
            del self.shown[row]


def expected_board(first: Expected, step: Expected) -> Expected:
    """What a board must show of these rows, where the members of the first step name the groups of the next."""
    board = {}
    for key, row in first.items():
        name = _member(key)
        board[name] = row
        board |= {f"{name}{NUL}{_member(below)}": each for below, each in of_group(step, name).items()}
    return board


def _member(key: str) -> str:
    return key.split(NUL)[-1]
