"""A place of a watch: a subscribed range or key, and its next frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import time_ns
from typing import TYPE_CHECKING

import structlog
from typing_extensions import override

from statecast.push.v2.push_pb2 import Watching
from ws_edge.codec.bodies import View
from ws_edge.codec.frames import ENVELOPE_BYTES, FILL_BYTES, Codec, Frame, PlaceFrame
from ws_edge.errors import MalformedFrameError, RequestError, RowTooLargeError, UnreadableRowError
from ws_edge.metrics import FrameTally
from ws_edge.model.documents import field_holding
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, Path, StoreKey
from ws_edge.watches.subscription import Beginning, RowNews, Subscriber, Subscription

if TYPE_CHECKING:
    from ws_edge.session.tree import Tree

log = structlog.get_logger(__name__)


MAX_SHARED_FRAMES = 64
"""How many frames of the same news are kept. Most clients use the same few ids for their watches."""


@dataclass(slots=True, eq=False)
class News:
    """The content of a place's frame, apart from the id and path."""

    watching: Watching | None = None
    rows: list[bytes] = field(default_factory=list)
    token: str = ""
    current: bool = False
    commits: list[int] = field(default_factory=list)
    """The commit times of its changes, in nanoseconds since 1970."""
    _frames: dict[tuple[int, Path], list[Frame]] = field(default_factory=dict, init=False)

    def frames(self, codec: Codec, watch_id: int, path: Path) -> list[Frame]:
        """Returns the frame of a place, encoded once for all that have the same id and path; none for no news."""
        frames = self._frames.get((watch_id, path))
        if frames is None:
            if len(self._frames) >= MAX_SHARED_FRAMES:
                self._frames.clear()
            content = self.watching, self.rows, self.token, self.current
            frames = codec.place_frames(PlaceFrame(watch_id, path, *content)) if any(content) else []
            self._frames[watch_id, path] = frames
        return frames


@dataclass(slots=True, eq=False)
class Place(Subscriber):
    """A place: its subscription, the view of its rows, and its next frame."""

    tree: Tree
    path: Path
    question: Question
    view: View
    subscription: Subscription | None = None
    """None until the place has subscribed."""
    is_complete: bool = field(default=False, init=False)
    """Whether it has been sent a token since it began."""
    children: dict[str, None] = field(default_factory=dict, init=False)
    """The names of its rows that have a place below."""
    full_path: Path = field(init=False)
    """The path in frames: it begins with the name of the watch if it is one of a channel."""
    _carried: tuple[bytes, ...] = ()
    """The body of a row that did not fit into the previous frame."""

    def __post_init__(self) -> None:
        self.full_path = (*self.tree.prefix, *self.path)

    @property
    def weight(self) -> int:
        """Returns the number of rows that it counts as: its limit, and more for an interval below a second."""
        limit, interval = self.question.limit, self.tree.interval
        return limit if not interval or interval >= 1 else round(limit / interval)

    def bookmark(self) -> str:
        """Returns a newer token of a place without changes; empty when there is none."""
        return "" if self.subscription is None or self._carried else self.subscription.bookmark()

    def blind_s(self, now: float) -> float:
        """Returns for how many seconds the place may be out of date; 0 when it is not."""
        return 0.0 if self.subscription is None else self.subscription.blind_s(now)

    def next_frames(self, codec: Codec, tally: FrameTally, max_bytes: int) -> list[Frame]:
        """Takes waiting rows, as many as fit into a frame; returns no frame when there is nothing to send."""
        subscription, tree = self.subscription, self.tree
        if subscription is None or subscription.is_ended:
            return []
        form = codec, self.view
        shared = None if self._is_unlike_others else subscription.shared_news()
        news = None if shared is None else shared.get(form)
        if news is not None:
            subscription.take_all()
        else:
            news = self._next_news(subscription, codec, max_bytes)
            if self._carried or subscription.has_news:
                tree.watches.writer.ready(self)
            elif shared is not None and subscription.is_level:
                shared[form] = news
        for commit_ns in news.commits:
            tally.aged((time_ns() - commit_ns) / 1e9)
        return news.frames(codec, tree.id, self.full_path)

    def _next_news(self, subscription: Subscription, codec: Codec, max_bytes: int) -> News:
        tree, news, failure = self.tree, News(), subscription.take_failure()
        if isinstance(failure, MalformedFrameError):
            tree.refused(self, failure)
            return news
        beginning = subscription.take_beginning()
        if beginning is not None:
            news.watching = self._watching(subscription, beginning)
            for row in subscription.rows() if beginning.resumed else ():
                tree.follow(self, row)
        rows = self._take_bodies(subscription, codec, news.commits, max_bytes, failure)
        if subscription.is_ended:  # a row has ended it
            return News()
        news.rows, news.token = rows, "" if self._carried else subscription.take_token()
        if news.token:
            tree.completed(self)
        news.current = tree.take_current()
        return news

    @override
    def ready(self, subscription: Subscription, /) -> None:
        self.subscription = subscription
        self.tree.watches.writer.ready(self)

    @property
    def _is_unlike_others(self) -> bool:
        """Whether its next frame cannot be shared."""
        tree = self.tree
        return bool(self._carried) or len(self.path) < len(tree.request.steps) or tree.owes_current

    def _take_bodies(
        self,
        subscription: Subscription,
        codec: Codec,
        commits: list[int],
        max_bytes: int,
        failure: RequestError | None,
    ) -> list[bytes]:
        """Takes rows as far as they fit, and follows each; adds the commit times of new rows to `commits`."""
        rows, size = list(self._carried), sum(map(len, self._carried))
        self._carried = ()
        if failure is not None:
            rows.append(codec.error_body(StoreKey(self.question.store.name, self.question.group), failure))
            subscription.failed("")  # of a key; the client drops its row
        while size < FILL_BYTES and (news := subscription.take_row()) is not None:
            self.tree.follow(self, news.state)
            body = self._body(news, codec, commits, max_bytes)
            if body is None:
                continue
            if rows and size + len(body) > max_bytes - ENVELOPE_BYTES:
                self._carried = (body,)
                break
            rows.append(body)
            size += len(body) + 1
        return rows

    def _body(self, news: RowNews, codec: Codec, commits: list[int], max_bytes: int) -> bytes | None:
        """Encodes a row, or an error when the row cannot be read or fits into no frame."""
        state = news.state
        try:
            state.check_readable()
            body = codec.body(news, self.view)
        except UnreadableRowError as error:
            return self._error_body(state, codec, error)
        except Exception:
            log.exception("row_failed", key=str(state.key))
            text = f"the row of {state.key} cannot be sent: tell the operators"
            return self._error_body(state, codec, UnreadableRowError(text))
        if body is not None and len(body) > max_bytes - ENVELOPE_BYTES:
            text = (
                f"the row of {state.key} has {len(body)} bytes, and a frame {max_bytes}: what it is now cannot be shown"
            )
            return self._error_body(state, codec, RowTooLargeError(text))
        if body is not None and not news.snapshot and state.commit_ns is not None:
            commits.append(state.commit_ns)
        return body

    def _error_body(self, state: KeyState, codec: Codec, error: RequestError) -> bytes:
        if self.subscription is not None:
            self.subscription.failed(state.key.member)
        return codec.error_body(state.key, error)

    def _watching(self, subscription: Subscription, beginning: Beginning) -> Watching:
        """Returns how the place begins, and notes the fields that hold the key and the sort value of its rows."""
        row = next((each for each in subscription.visible_rows() if not each.is_unreadable), None)
        if row is not None:
            fields = [field_holding(row, text) for text in (row.key.member, row.key.sort)]
            shown = [name if not self.view.fields or name in self.view.fields else "" for name in fields]
            self.view = self.view._replace(key_field=shown[0], sort_field=shown[1])
        return Watching(
            resumed=beginning.resumed,
            message=self.question.store.kind,
            key_field=self.view.key_field,
            sort_field=self.view.sort_field,
            limit=self.question.limit,
            interval_ms=round(subscription.options.interval * 1000),
        )
