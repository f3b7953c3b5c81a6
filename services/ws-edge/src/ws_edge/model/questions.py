"""The question of a watch or a read: a range of a group, or a key, which is a range of one."""

from dataclasses import dataclass, replace
from typing import Protocol

from ws_edge.errors import ForbiddenError, MalformedFrameError
from ws_edge.model.authorization import Consumer
from ws_edge.model.stores import Store, check_key_part

MAX_LIMIT = 1000
"""The most rows of a question; larger limits are reduced to it."""


class Bounds(Protocol):
    """A message with the bounds of a range."""

    sort_from: str
    sort_to: str
    limit: int
    reverse: bool


@dataclass(frozen=True, slots=True)
class Question:
    """The first `limit` rows of a group, from `sort_from` to below `sort_to`; empty bounds are open.

    A store with one row per group has keys: its questions have the limit 1 and no bounds. The limit of a range is 0
    until one is granted.
    """

    store: Store
    group: str
    sort_from: str = ""
    sort_to: str = ""
    limit: int = 1
    reverse: bool = False
    """Whether the range has the last rows instead of the first ones."""

    @property
    def is_key(self) -> bool:
        """Whether the group has one row."""
        return not self.store.members

    def searched_for(self, consumer: Consumer) -> "Question":
        """Returns the question whose rows are searched for those that the consumer may see.

        It is this one, unless rows of others may lie between them: then these must not count (ADR 0076).
        """
        is_shown = self.is_key or self.store.rule.shows_all(consumer)
        return self if is_shown else replace(self, limit=MAX_LIMIT)

    def check(self) -> None:
        """Raises MalformedFrameError when the group or range is invalid for the store."""
        if not self.group:
            raise MalformedFrameError("group is empty: name one")
        if self.limit < 0:
            raise MalformedFrameError(f"limit is {self.limit}: it is a number of members, and 0 takes the default")
        if self.sort_to and self.sort_to.encode() < self.sort_from.encode():
            raise MalformedFrameError("sort_to is below sort_from: swap them")
        for name in ("group", "sort_from", "sort_to"):
            check_key_part(name, getattr(self, name))

    def check_group(self, consumer: Consumer) -> None:
        """Raises ForbiddenError when the group alone shows that the consumer may not see its rows."""
        if self.store.rule.group and not consumer.staff and self.group != consumer.id:
            raise ForbiddenError(f"the group {self.group} of the store {self.store.name} belongs to somebody else")

    def __str__(self) -> str:
        bounds = "" if self.is_key else f"/[{self.sort_from}..{self.sort_to})"
        return f"{self.store.name}/{self.group}{bounds}"


def question_of(store: Store, group: str, bounds: Bounds) -> Question:
    """Returns the question of a message. Raises MalformedFrameError for bounds where a group has one row."""
    if store.members:
        return Question(store, group, bounds.sort_from, bounds.sort_to, bounds.limit, bounds.reverse)
    check_bounds(
        store,
        sort_from=bounds.sort_from,
        sort_to=bounds.sort_to,
        reverse=bounds.reverse,
    )
    return Question(store, group)


def check_bounds(store: Store, **bounds: object) -> None:
    """Raises MalformedFrameError for bounds of many rows, by their names, in a store with one row per group.

    Any limit will do there.
    """
    names = [name for name, value in bounds.items() if value]
    if names and not store.members:
        raise MalformedFrameError(f"{store.name} has one row per group: leave {' and '.join(names)} out")
