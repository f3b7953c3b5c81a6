"""A place of a watch: a subscribed range or key, and its next frame."""

from __future__ import annotations

from dataclasses import dataclass, field
from time import time_ns
from typing import TYPE_CHECKING, NamedTuple

import structlog
from typing_extensions import override

from statecast.push.v2.push_pb2 import Watching
from ws_edge.codec.bodies import View
from ws_edge.codec.frames import ENVELOPE_BYTES, FILL_BYTES, Codec, PlaceFrame
from ws_edge.errors import MalformedFrameError, RequestError, RowTooLargeError, UnreadableRowError
from ws_edge.metrics import FrameTally
from ws_edge.model.documents import field_holding
from ws_edge.model.questions import Question
from ws_edge.model.states import Path, StoreKey
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
    _frames: dict[tuple[int, Path], list[bytes]] = field(default_factory=dict, init=False)

    def frames(self, codec: Codec, watch_id: int, path: Path) -> list[bytes]:
        """Returns the frame of a place, encoded once for all that have the same id and path; none for no news."""
        frames = self._frames.get((watch_id, path))
        if frames is None:
            if len(self._frames) >= MAX_SHARED_FRAMES:
                self._frames.clear()
            content = self.watching, self.rows, self.token, self.current
            frames = codec.place_frames(PlaceFrame(watch_id, path, *content)) if any(content) else []
            self._frames[watch_id, path] = frames
        return frames


class EncodedRow(NamedTuple):
    """A row as it is sent."""

    news: RowNews
    body: bytes | None
    """None when nothing has changed that the view shows."""
    is_error: bool = False
    """Whether an error takes its place, by which the client drops its row."""


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
    has_steps: bool = field(init=False)
    """Whether there may be places below its rows, so that its frames cannot be shared."""
    _carried: EncodedRow | None = None
    """The row that did not fit into the previous frame."""

    def __post_init__(self) -> None:
        self.full_path = (*self.tree.prefix, *self.path)
        self.has_steps = len(self.path) < len(self.tree.request.steps)

    def bookmark(self) -> str:
        """Returns a newer token of a place without changes; empty when there is none."""
        return "" if self.subscription is None or self._carried else self.subscription.bookmark()

    def blind_s(self, now: float) -> float:
        """Returns for how many seconds the place may be out of date; 0 when it is not."""
        return 0.0 if self.subscription is None else self.subscription.blind_s(now)

    def next_frames(self, codec: Codec, tally: FrameTally, max_bytes: int) -> list[bytes]:
        """Takes waiting rows, as many as fit into a frame; returns no frame when there is nothing to send."""
        subscription, tree = self.subscription, self.tree
        if subscription is None or subscription.is_ended or tree.watches.is_outdated(self.question.store):
            return []
        form = codec, self.view
        shared = None if self.has_steps else subscription.shared_news()
        news = None if shared is None else shared.get(form)
        if news is not None:
            subscription.take_all()
        else:
            news = self._next_news(subscription, codec, max_bytes)
            if self._carried or subscription.has_news:
                tree.watches.writer.ready(self)
            elif shared is not None and subscription.is_level and not news.current:
                shared[form] = news
        for commit_ns in news.commits:
            tally.aged((time_ns() - commit_ns) / 1e9)
        return news.frames(codec, tree.request.id, self.full_path)

    def _next_news(self, subscription: Subscription, codec: Codec, max_bytes: int) -> News:
        tree, news, failure = self.tree, News(), subscription.take_failure()
        if isinstance(failure, MalformedFrameError):
            tree.refused(self, failure)
            return news
        beginning = subscription.take_beginning()
        if beginning is not None:
            news.watching = self._watching(subscription, beginning)
            for row in subscription.rows() if beginning.resumed and self.has_steps else ():
                self._follow(self._encoded(RowNews(row), codec, max_bytes))
        if failure is not None:  # of a key
            news.rows.append(codec.error_body(StoreKey(self.question.store.name, self.question.group), failure))
            subscription.failed("")
            tree.drop(self, "")
        self._take_rows(subscription, news, codec, max_bytes)
        if subscription.is_ended:  # a row has ended it
            return News()
        news.token = "" if self._carried else subscription.take_token()
        if news.token:
            tree.completed(self)
        news.current = tree.take_current()
        return news

    @override
    def ready(self, subscription: Subscription, /) -> None:
        self.tree.watches.writer.ready(self)

    def _take_rows(self, subscription: Subscription, news: News, codec: Codec, max_bytes: int) -> None:
        """Takes rows as far as they fit, and follows each that is sent, so that it comes before the places below it."""
        size = sum(map(len, news.rows))
        while size < FILL_BYTES and (row := self._next_row(subscription, codec, max_bytes)) is not None:
            length = len(row.body or b"")
            if news.rows and size + length > max_bytes - ENVELOPE_BYTES:
                self._carried = row
                break
            self._follow(row)
            if row.body is None:
                continue
            news.rows.append(row.body)
            size += length + 1
            if not (row.is_error or row.news.snapshot) and row.news.state.commit_ns is not None:
                news.commits.append(row.news.state.commit_ns)

    def _next_row(self, subscription: Subscription, codec: Codec, max_bytes: int) -> EncodedRow | None:
        if self._carried is not None:
            row, self._carried = self._carried, None
            return row
        news = subscription.take_row()
        if news is None:
            return None
        row = self._encoded(news, codec, max_bytes)
        if row.is_error:
            subscription.failed(news.state.key.member)
        return row

    def _follow(self, row: EncodedRow) -> None:
        if row.is_error:
            self.tree.drop(self, row.news.state.key.member)
        else:
            self.tree.follow(self, row.news.state)

    def _encoded(self, news: RowNews, codec: Codec, max_bytes: int) -> EncodedRow:
        """Encodes a row, or an error when the row cannot be read or fits into no frame."""
        state = news.state
        try:
            state.check_readable()
            body = codec.body(news, self.view)
            if body is None or len(body) <= max_bytes - ENVELOPE_BYTES:
                return EncodedRow(news, body)
            size = f"has {len(body)} bytes, and a frame {max_bytes}"
            error: RequestError = RowTooLargeError(f"the row of {state.key} {size}: what it is now cannot be shown")
        except UnreadableRowError as unreadable:
            error = unreadable
        except Exception:
            log.exception("row_failed", key=str(state.key))
            error = UnreadableRowError(f"the row of {state.key} cannot be sent: tell the operators")
        return EncodedRow(news, codec.error_body(state.key, error), is_error=True)

    def _watching(self, subscription: Subscription, beginning: Beginning) -> Watching:
        """Returns how the place begins, and notes the fields that hold the key and the sort value of its rows."""
        row = next((each for each in subscription.audience.rows() if not each.is_unreadable), None)
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
