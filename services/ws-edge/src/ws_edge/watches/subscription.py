"""One subscriber's interest in a question: the rows that it still has to be sent, and its token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from google.protobuf.message import Message

from ws_edge.errors import RequestError
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.watches.audience import Audience, WatchOptions
from ws_edge.watches.moves import Move
from ws_edge.watches.pending import NOTHING, Batch, Names, Pending
from ws_edge.watches.token import Resumption, resumption_of, token_of

if TYPE_CHECKING:
    from ws_edge.watches.watch import Watch

LARGE_ROW = 8192
"""Size of an encoded row, in bytes, from which its JSON may exceed a frame. A client that resumes may have got an error
instead of the row, so such a row is no base of a delta."""

BLIND_AFTER_S = 3.0
"""How long answers may be missing before a subscription counts as blind."""


class Subscriber(Protocol):
    """Is notified of subscriptions with news. The hub calls it on the event loop: it must neither block nor raise."""

    __slots__ = ()

    def ready(self, subscription: Subscription, /) -> None:
        """Notes that the subscription has news. Called again for more news, and maybe already within `subscribe`."""


class Beginning(NamedTuple):
    """How a subscription begins: with the changes since its token, or with all rows."""

    resumed: bool


class RowNews(NamedTuple):
    """A row to be sent, as its consumer sees it."""

    state: KeyState
    """The state of the row; without a row it has left, or the consumer may not see it."""
    names: Names = None
    """The fields that have changed since the version that the client holds; None for the whole row."""
    skipped: int = 0
    """How many versions were left out because the client read slowly."""
    snapshot: bool = False
    """Whether it is sent because the subscription begins, and not because it changed now."""


class SubscriptionStatus(Enum):
    """The state of a subscription between its start and its end. Only the hub changes it."""

    WAITING = auto()
    """It waits for its first answer, or for one that is as new as its token."""
    CURRENT = auto()
    """It has begun, and its subscriber is notified of its news."""
    QUEUED = auto()
    """It has begun, and waits for its interval to be over."""
    ENDED = auto()


# Looking up a member of an enum takes as long as a good part of a frame.
WAITING, ENDED = SubscriptionStatus.WAITING, SubscriptionStatus.ENDED


@dataclass(slots=True, eq=False)
class Subscription:
    """A question of one subscriber.

    Frames are made by `take_beginning`, then `take_row` as often as rows fit, then `take_token`. A round has the keys
    that wait when it begins, and ends with a token as of its beginning. So even a client that never catches up is
    complete again and again. `ahead` of the token is by how many offsets its rows may be newer.
    """

    watch: Watch
    audience: Audience
    subscriber: Subscriber
    options: WatchOptions
    asked_at: float
    """When the subscription was made, in seconds of the hub's clock."""
    status: SubscriptionStatus = field(default=SubscriptionStatus.WAITING, init=False)
    next_at: float = field(default=0.0, init=False)
    """When its interval is over."""
    token: Resumption | None = field(default=None, init=False)
    """The client's token; None when it has none for this question."""
    is_complete: bool = field(default=False, init=False)
    """Whether a token was taken since it began."""
    failure: RequestError | None = field(default=None, init=False)
    """The error by which its row cannot be read, or its question is refused, until the subscriber takes it."""
    _pending: Pending = field(default_factory=Pending, init=False)
    _beginning: Beginning | None = field(default=None, init=False)
    _owes_token: bool = field(default=False, init=False)
    _is_in_round: bool = field(default=False, init=False)
    _round_position: Position | None = field(default=None, init=False)
    """The position of the window when the round began; None when it was outdated."""
    _sent: Position | None = field(default=None, init=False)
    """The newest position of the rows and departures that were taken; None when the last token is no older."""
    _last_token: Position | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.token = resumption_of(self.audience.mask, self.options.token)

    @property
    def is_ended(self) -> bool:
        return self.status is ENDED

    @property
    def has_news(self) -> bool:
        """Whether there is something to take."""
        if self._pending.entries or self._beginning is not None or self.failure is not None:
            return self.status is not ENDED
        return self._owes_token and self.status is not ENDED and not self.watch.window.is_outdated

    def shared_news(self) -> dict[Any, Any] | None:
        """Returns the news made for other subscriptions that wait for the same rows, by how they were made.

        None unless this subscription has exactly their news to send.
        """
        batch, window = self._pending.batch, self.watch.window
        if batch is None or batch is NOTHING or window.is_outdated or window.position is None:
            return None
        is_other = self._owes_token or self._is_in_round or self._sent is not None
        if is_other or self._beginning is not None or self.failure is not None:
            return None
        return batch.news_at(window.position)

    @property
    def is_level(self) -> bool:
        """Whether the last token covers all rows that are known here."""
        return self._pending.is_clear and self._sent is None and not self._owes_token

    def take_all(self) -> None:
        """Takes all waiting rows and their token, which are sent as shared news."""
        self._pending.share(NOTHING)
        self._last_token = self.watch.window.position

    def take_beginning(self) -> Beginning | None:
        """Returns how the subscription begins, once."""
        beginning, self._beginning = self._beginning, None
        return beginning

    def take_failure(self) -> RequestError | None:
        """Returns the error once: of a row that cannot be read, or of a question that is refused."""
        failure, self.failure = self.failure, None
        return failure

    def take_row(self) -> RowNews | None:
        """Removes and returns the next row of the round; None when the round has ended."""
        if self.is_ended or not self._pending:
            return None
        if not self._is_in_round:
            self._begin_round()
        while (taken := self._pending.take()) is not None:
            key, entry = taken
            state = self._state_of(key)
            self._note_sent(state.position if self._shows_changes else self._through)
            if state.row is None and not entry.held:
                continue  # it came and went before the client heard of it
            self._owes_token = True
            return RowNews(state, entry.names, entry.skipped, entry.snapshot)
        self._is_in_round = self._owes_token  # else no token ends the round
        return None

    def take_token(self) -> str:
        """Returns the token of the rows taken; empty when more rows come before it, or nothing was taken."""
        if self.is_ended or not self._owes_token or self._pending.has_round():
            return ""
        if len(self._pending) > 0 and not self._is_in_round:
            return ""
        position = self._round_position if len(self._pending) > 0 else self._known()
        self._is_in_round = False
        if position is None:
            return ""
        self._owes_token, self.is_complete = False, True
        return self._token_of(position)

    def bookmark(self) -> str:
        """Returns a newer token if only the position has moved since the last one; else an empty text."""
        position, last = self._known(), self._last_token
        is_quiet = self.is_complete and not self.has_news and not self._is_in_round
        if not is_quiet or position is None or position == last or not self._can_resume():
            return ""
        return self._token_of(position)

    def failed(self, key: str) -> None:
        """Notes that a row could not be sent, so that its next version is sent whole."""
        self._pending.failed(key)

    def rows(self) -> Iterator[KeyState]:
        """Returns the rows that the client holds: those that the consumer may see, except waiting ones."""
        return (row for row in self.audience.rows() if row.key.member not in self._pending)

    def blind_s(self, now: float) -> float:
        """Returns for how many seconds the subscription may be out of date; 0 while the edge sees."""
        if self.status is WAITING:
            silent = now - self.asked_at
        else:
            silent = now - self.watch.confirmed_at if self.watch.failing_since is not None else 0.0
        if silent < BLIND_AFTER_S:
            silent = 0.0
        return max(silent, self.watch.lag_ms / 1000)

    def begin(self) -> None:
        """Begins with the rows that are known; the hub calls it once."""
        window, token = self.watch.window, self.token
        missed = window.missed_after(token.position) if token is not None and self._can_resume() else None
        self._beginning, self._owes_token = Beginning(missed is not None), True
        if missed is not None:
            for row in self.audience.rows():
                if isinstance(row.row, Message) and row.row.ByteSize() >= LARGE_ROW:
                    self._pending.failed(row.key.member)
            self._pending.begin(missed, held=True)
        else:
            self._pending.begin((row.key.member for row in self.audience.rows()), held=False)

    def note(self, moves: Sequence[Move], batches: dict[Audience, Batch]) -> int:
        """Adds changes of the window, except those that the consumer may not see.

        `batches` has the changes of each audience, and is filled by this call. Returns how many versions were left out
        because the client reads slowly.
        """
        if self.audience.members > 1 and self._pending.is_clear:
            batch = batches.get(self.audience)
            if batch is None:
                batch = batches[self.audience] = self.audience.batch(moves)
            self._pending.share(batch)
            return 0
        return sum(map(self._note, moves))

    def _note(self, move: Move) -> bool:
        change = self.audience.change(move, has_base=self._pending.has_base(move.key))
        return change is not None and self._pending.add(move.key, *change)

    def offered(self) -> None:
        """Notes that the subscriber was notified of the news."""
        self._pending.offered()

    def end(self) -> None:
        """Drops the subscriber, so that it is not kept alive by references to the subscription."""
        self.status = ENDED
        del self.subscriber

    def _begin_round(self) -> None:
        self._is_in_round, self._round_position = True, self._known()
        self._pending.begin_round()

    def _known(self) -> Position | None:
        """Returns the position up to which the edge has everything; None while the window is outdated.

        Without a row to see, or with private fields, that is no row's: the position of a hidden row would show that
        there is one, and that of others when their private part changes.
        """
        window = self.watch.window
        if window.is_outdated:
            return None
        return window.position if self._shows_changes and self._shows_a_row else window.through

    def _note_sent(self, position: Position) -> None:
        sent = self._sent
        self._sent = max(sent, position) if sent is not None and sent.epoch == position.epoch else position

    def _token_of(self, position: Position) -> str:
        sent, self._last_token = self._sent, position
        ahead = sent.offset - position.offset if sent is not None and sent.epoch == position.epoch else 0
        if ahead <= 0:
            self._sent = None
        return token_of(self.audience.mask, position, max(0, ahead))

    def _state_of(self, key: str) -> KeyState:
        """Returns the newest row as the consumer sees it; a state without a row when there is none to see."""
        state, question = self.audience.seen(self.watch.window.rows.get(key)), self.watch.question
        return state or KeyState(StoreKey(question.store.name, question.group, "", key), self._through)

    def _can_resume(self) -> bool:
        """Returns whether a position determines the rows that the client has: no single rows are hidden.

        Where the only row may be hidden, there must be one to see. Else a resumption would show that a hidden row has
        changed since the token: the client, which may have held the row before, would get its departure. In the same
        way it would show that the private part of a row has changed, by the row as the client holds it.
        """
        return self._shows_changes and (self.shows_all or (self.watch.question.is_key and self._shows_a_row))

    @property
    def _through(self) -> Position:
        """The position up to which the edge has read, which is that of no row of a key."""
        through = self.watch.window.through
        assert through is not None  # noqa: S101  an answer has brought a row
        return through

    @property
    def shows_all(self) -> bool:
        """Whether the consumer may see every row."""
        return self.watch.question.store.rule.shows_all(self.options.consumer)

    @property
    def _shows_changes(self) -> bool:
        return self.watch.question.store.shows_changes(self.options.consumer)

    @property
    def _shows_a_row(self) -> bool:
        return next(self.audience.rows(), None) is not None
