"""A query of a socket: a subscription of its first range; its rows bring the subscriptions of the next step."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import override

from ws_edge.codec.frames import Held, QueryRequest
from ws_edge.errors import ForbiddenError, MalformedFrameError, RequestError
from ws_edge.hub.member_changes import MemberChange
from ws_edge.hub.watch import Subscriber, Subscription
from ws_edge.model.authorization import check_key, seen_by
from ws_edge.model.query_specs import Step
from ws_edge.model.states import AnyKey, KeyState, Path, Place, Position, name_of, rows_of
from ws_edge.model.stores import find

if TYPE_CHECKING:
    from ws_edge.session.session import Session

FIRST: Path = ()


@dataclass(slots=True, eq=False)
class Branch:
    """One range or key of a query, and those that its rows have brought."""

    key: AnyKey
    subscription: Subscription | None = None
    """None until the hub has it."""
    rows: set[str] = field(default_factory=set)
    """The names of the rows that have a branch."""


class LiveQuery(Subscriber):
    """Follows rows when their change is taken to be sent: a client hears of a row before the ranges that it brings.

    So changes that a slow client has not received cost nothing beyond the ranges that it knows of.
    """

    def __init__(self, request: QueryRequest, steps: tuple[Step, ...], session: "Session") -> None:
        """Nothing is watched before `begin`; `steps` are those of the request."""
        self.spec = request.spec
        self._steps = steps
        self._request = request
        self._session = session
        self._interval = session.context.interval(request.interval_ms, request.spec.first.store)
        self._after: dict[Path, tuple[str, Position]] = {
            path: (group, position) for (path, group), position in request.after.items()
        }
        """The rows that the client has of ranges that have not begun."""
        self._branches: dict[Path, Branch] = {}
        self.rows = 0
        """How many rows may be watched, as they count in the quotas."""

    @property
    def ranges(self) -> int:
        """How many ranges and keys are watched."""
        return len(self._branches)

    @property
    def stores(self) -> frozenset[str]:
        """The names of the stores of all steps."""
        return frozenset((self.spec.first.store, *(step.store.name for step in self._steps)))

    @property
    def held(self) -> Held:
        """The rows that the client has, by each range that was sent to its end."""
        begun = ((path, branch.key.group, branch.subscription) for path, branch in self._branches.items())
        positions = {(path, group): each.position for path, group, each in begun if each is not None}
        return {place: position for place, position in positions.items() if position is not None}

    def begin(self, first: AnyKey) -> None:
        """Starts the first range, as it was granted. Raises TooManySubscriptionsError."""
        self._watch(FIRST, first, resumes=True)

    def close(self) -> None:
        self._prune(FIRST)

    @override
    def started(self, subscription: Subscription, recovered: bool, /) -> None:
        path = _path(subscription)
        reply = self._session.codec.started(subscription, recovered)
        if reply is not None:
            self._session.reply(reply)
        if not recovered:
            # The client drops the ranges below this one, too.
            self._after = {each: held for each, held in self._after.items() if each[: len(path)] != path}
            return
        backlog = subscription.backlog
        for row in tuple(subscription.watch.rows()):
            if backlog is not None and row.key.member not in backlog:
                self._follow(path, row, resumes=True)

    @override
    def changed(self, subscription: Subscription, state: KeyState | None, snapshot: bool, /) -> None:
        self._session.writer.put_range(subscription)

    @override
    def change_taken(self, subscription: Subscription, change: MemberChange, /) -> None:
        self._follow(_path(subscription), change.state, resumes=change.before is not None)

    @override
    def refused(self, subscription: Subscription, error: RequestError, /) -> None:
        path = _path(subscription)
        if path == FIRST:
            self._fail(error)
        else:
            self._end(path)

    @override
    def delayed(self, subscription: Subscription, /) -> None:
        self._session.tell_delay(subscription.watch, self._request.reference)

    def _follow(self, path: Path, row: KeyState, resumes: bool) -> None:
        """Watches the range that the row, of the range at `path`, names now, and no other for this row."""
        if len(path) == len(self._steps) or path not in self._branches:
            return
        child = (*path, name_of(row.key))
        if row.row is None:
            self._prune(child)  # the client drops it with the row
            return
        key, branch = self._next(path, row), self._branches.get(child)
        if branch is not None and branch.key == key:
            return
        if branch is not None:
            self._end(child)
        if key is not None:
            try:
                self._watch(child, key, resumes)
            except RequestError as error:
                self._fail(error)

    def _next(self, path: Path, row: KeyState) -> AnyKey | None:
        """Returns the range that the next step watches for a row; None if it names none that the consumer may see."""
        before = find(self._session.context.stores, row.key.store)
        step = self._steps[len(path)]
        if row.is_unreadable:
            return None
        group = before.text_of(seen_by(self._session.caller.consumer, row).row, step.field)
        key = self._session.context.granted(step.key_for(group))
        try:
            step.store.check(key)
            check_key(self._session.caller.consumer, step.store.rule, key)
        except (MalformedFrameError, ForbiddenError):
            return None
        return key

    def _watch(self, path: Path, key: AnyKey, resumes: bool) -> None:
        session, parent = self._session, self._branches.get(path[:-1])
        if path != FIRST and parent is None:
            return  # the session has ended meanwhile
        session.check_query_range(key)
        group, after = self._after.pop(path, (key.group, None))
        branch = self._branches[path] = Branch(key)
        self.rows += rows_of(key)
        if parent is not None:
            parent.rows.add(path[-1])
        session.count()
        consumer = session.caller.consumer
        sees_all = find(session.context.stores, key.store).rule.shows_all(consumer)
        reference = self._request.reference if path == FIRST else ""
        subscription = session.context.hub.subscribe(
            self,
            consumer,
            key,
            after if resumes and group == key.group else None,
            self._interval,
            reference,
            sees_all,
            place=Place(self.spec.name, path),
        )
        if self._branches.get(path) is branch:
            branch.subscription = subscription
        else:  # it has ended while it began
            session.context.hub.unsubscribe(subscription)

    def _prune(self, path: Path) -> None:
        """Ends the ranges that are watched at a path and below."""
        self._after.pop(path, None)
        branch = self._branches.pop(path, None)
        if branch is None:
            return
        self.rows -= rows_of(branch.key)
        for name in branch.rows:
            self._prune((*path, name))
        if path != FIRST and path[:-1] in self._branches:
            self._branches[path[:-1]].rows.discard(path[-1])
        if branch.subscription is not None:
            self._session.context.hub.unsubscribe(branch.subscription)
        self._session.writer.outbox.withdraw(Place(self.spec.name, path))
        self._session.count()

    def _end(self, path: Path) -> None:
        """As `_prune`, and tells the client, to which the row says nothing of it."""
        branch = self._branches.get(path)
        if branch is not None:
            self._prune(path)
            self._session.reply(self._session.codec.cancelled(branch.key, "", Place(self.spec.name, path)))

    def _fail(self, error: RequestError) -> None:
        """Ends the query: a part of it would look like all of it."""
        self._session.end_query(self._request, error)


def _path(subscription: Subscription) -> Path:
    assert subscription.place is not None  # noqa: S101  all subscriptions of a query have one
    return subscription.place.path
