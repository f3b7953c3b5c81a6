"""A query in steps, as one subscription."""

from collections.abc import Awaitable, Callable, Iterator
from typing import NamedTuple

from typing_extensions import override

from statecast.push.v1.push_pb2 import ClientFrame, ServerFrame
from statecast.push.v1.query_pb2 import QueryPosition, UnwatchQuery, WatchQuery
from statecast.push.v1.range_pb2 import MemberChange, RangeChanged, RangeUnwatched, RangeWatched
from statecast.push.v1.subscription_pb2 import Start
from statecast_client.push.protocol import name_of
from statecast_client.push.subscription import RangeProgress, Watched, merged

MAX_AFTER_BYTES = 8192
"""What a request may say of what it has: an edge refuses larger frames. The ranges that do not fit are sent anew."""

Path = tuple[str, ...]


class QueryUpdate(NamedTuple):
    """What happens in one range of a query.

    `RangeWatched`: the rows at `path` and below are void, and those of the range follow. `RangeUnwatched`: they are
    void, and no more follow. `RangeChanged`: a row of the range; when it has left, all below the path that ends with
    its `name_of_row` is void.
    """

    path: Path
    """The rows that lead to the range."""
    event: RangeWatched | RangeChanged | RangeUnwatched


def name_of_row(change: RangeChanged) -> str:
    """The name of a changed row in the paths of what is below it."""
    return change.key.member or change.key.group


class QuerySubscription(Watched[QueryUpdate]):
    """The ranges of a query; at most one change of each row is kept unread."""

    def __init__(self, request: WatchQuery, unsubscribe: Callable[[Watched[QueryUpdate]], Awaitable[None]]) -> None:
        super().__init__(name_of(request), unsubscribe)
        self._query = request
        self._ranges: dict[Path, tuple[str, RangeProgress]] = {}
        """The group of each range, and how far it has been read."""

    @override
    def _opening(self, frame_id: str) -> ClientFrame:
        del self._query.after[:]
        self._query.after.extend(self._positions())
        return ClientFrame(id=frame_id, watch_query=self._query)

    @override
    def closing(self, frame_id: str) -> ClientFrame:
        return ClientFrame(id=frame_id, unwatch_query=UnwatchQuery(name=self._query.query.name))

    def receive(self, frame: ServerFrame) -> None:
        """Takes a frame about one of the ranges."""
        path = tuple(frame.query.path)
        match frame.WhichOneof("event"):
            case "range_watched":
                self._watched(path, frame.range_watched)
            case "range_changed" if path in self._ranges:
                self._changed(path, frame.range_changed)
            case "range_unwatched":
                self._drop(path)
                self._keep((path, None), QueryUpdate(path, frame.range_unwatched))

    def _watched(self, path: Path, event: RangeWatched) -> None:
        if event.start == Start.START_SNAPSHOT or path not in self._ranges:
            self._drop(path)
            self._ranges[path] = event.range.group, RangeProgress()
            self._keep((path, None), QueryUpdate(path, event))
        if event.HasField("through"):
            self._ranges[path][1].advance(event.through)

    def _changed(self, path: Path, change: RangeChanged) -> None:
        is_news = self._ranges[path][1].takes(change)
        name = name_of_row(change)
        if change.change == MemberChange.MEMBER_CHANGE_LEFT:
            self._drop((*path, name))
        if not is_news:
            return
        unread = self._unread.pop((path, name), None)
        newest = merged(unread.event, change) if unread and isinstance(unread.event, RangeChanged) else change
        if newest is not None:
            self._keep((path, name), QueryUpdate(path, newest))

    def _drop(self, path: Path) -> None:
        """Forgets what is known of the ranges at a path and below, and what is unread of them."""
        depth = len(path)
        for each in [each for each in self._ranges if each[:depth] == path]:
            del self._ranges[each]
        for name in [name for name, update in self._unread.items() if update.path[:depth] == path]:
            del self._unread[name]

    def _positions(self) -> Iterator[QueryPosition]:
        """What to resume from, the first ranges first: those below a range that begins anew do so as well."""
        size = 0
        for path, (group, progress) in sorted(self._ranges.items(), key=lambda each: len(each[0])):
            if progress.position is None:
                continue
            position = QueryPosition(path=path, group=group, through=progress.position)
            size += position.ByteSize() + 4
            if size > MAX_AFTER_BYTES:
                return
            yield position
