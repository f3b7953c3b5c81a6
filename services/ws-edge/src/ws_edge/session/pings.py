"""The pings of one socket, with the tokens of quiet places and the watches that may be out of date."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import InitVar, dataclass, field

from statecast.push.v2.push_pb2 import Blind, Bookmark, Ping
from ws_edge.codec.frames import parts_of
from ws_edge.session.channel_watch import ChannelWatch
from ws_edge.session.outbox import SocketWriter
from ws_edge.session.place import Place

PING_S = 20
"""How long a socket is silent before it is pinged."""
BLIND_LOOK_S = 5.0
"""How often a socket checks whether its watches are out of date."""
LAGS_S = 1.0
"""How long the lags of watches are kept: a client may ask a thousand times a second."""
BOOKMARKS_S = 60.0
"""The shortest time between two pings with bookmarks."""

Places = Callable[[], Iterable[Place | ChannelWatch]]
"""Returns the places of a socket; called only when they are looked at."""


@dataclass(slots=True, eq=False)
class Pings:
    """Decides when to ping a socket, and with which content. Times are seconds of one monotonic clock."""

    began_at: InitVar[float]
    _pinged_at: float = field(init=False)
    _looked_at: float = field(init=False)
    _bookmarked_at: float = field(init=False)
    _lags: dict[int, float] = field(default_factory=dict, init=False)
    """As of `_lags_at`, for how many seconds watches may be out of date."""
    _lags_at: float = field(default=-math.inf, init=False)
    _blind_ids: frozenset[int] = field(default=frozenset(), init=False)
    """The watches that the last ping named."""

    def __post_init__(self, began_at: float) -> None:
        self._pinged_at = self._looked_at = self._bookmarked_at = began_at

    def is_due(self, places: Places, sent_at: float, now: float) -> bool:
        """Returns whether the socket was idle for long, or other watches than before are out of date."""
        if now - max(sent_at, self._pinged_at) >= PING_S:
            return True
        if now - self._looked_at < BLIND_LOOK_S:
            return False
        self._looked_at = now
        self._look(places, now)
        return self._lags.keys() != self._blind_ids

    def pings(self, places: Places, writer: SocketWriter, now: float) -> list[Ping]:
        """Returns the ping to send now; with many bookmarks several, of which each fits into a frame."""
        self._pinged_at = now
        if now - self._lags_at >= LAGS_S:
            self._look(places, now)
        self._blind_ids = frozenset(self._lags)
        by_lag = defaultdict[int, list[int]](list)
        for watch_id, lag in sorted(self._lags.items()):
            by_lag[round(lag) or 1].append(watch_id)
        blind = [Blind(ids=ids, lag_s=lag) for lag, ids in sorted(by_lag.items())]
        bookmarks = self._bookmarks(places, writer, now)
        # The other half of a frame is for `blind`.
        parts = parts_of(bookmarks, writer.max_frame_bytes // 2, max_size)
        return [Ping(bookmarks=part, blind=blind) for part in parts]

    def _look(self, places: Places, now: float) -> None:
        self._lags, self._lags_at = _lags(places(), now), now

    def _bookmarks(self, places: Places, writer: SocketWriter, now: float) -> list[Bookmark]:
        if now - self._bookmarked_at < BOOKMARKS_S:
            return []
        self._bookmarked_at = now
        bookmarks = []
        for place in places():
            token = "" if place in writer else place.bookmark()
            if token:
                bookmarks.append(Bookmark(id=place.tree.id, path=place.full_path, token=token))
        return bookmarks


def max_size(bookmark: Bookmark) -> int:
    """Returns the most bytes that a bookmark may take in JSON, where a control character takes six."""
    return 64 + 6 * bookmark.ByteSize()


def _lags(places: Iterable[Place | ChannelWatch], now: float) -> dict[int, float]:
    """Returns for how many seconds each watch may be out of date, by its id; those that are not are left out."""
    lags = dict[int, float]()
    for place in places:
        lag = place.blind_s(now)
        if lag:
            lags[place.tree.id] = max(lag, lags.get(place.tree.id, 0.0))
    return lags
