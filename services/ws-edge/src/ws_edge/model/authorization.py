"""Consumers, and which keys and rows they may see."""

from dataclasses import dataclass

from ws_edge.errors import ForbiddenError
from ws_edge.model.states import KeyState

STAFF_GROUP = "staff"
EVERYONE = "\0everyone"
"""The owner of rows that all consumers may see; no consumer can have this id, because no header carries a NUL."""


def principal_of(username: str) -> str:
    """Returns the principal of a consumer without an id. It has a comma, which no id has."""
    return f",{username}"


@dataclass(frozen=True, slots=True)
class Consumer:
    """The consumer that the gateway has authenticated. `id` is the customer's id; staff see every row."""

    id: str
    name: str
    staff: bool

    @property
    def principal(self) -> str:
        """The consumer's name in channels and revocations: no id is that of a consumer without one."""
        return self.id or principal_of(self.name)

    @property
    def label(self) -> str:
        """The consumer's name for people, in logs and errors."""
        return self.id or self.name


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """The rule of who may see the rows of a store: staff, and the consumer with the id in the row's field."""

    field: str | None
    """None in stores for staff alone, or, with `everyone`, for all consumers."""
    group: bool = False
    """Whether every key's group is also a consumer's id: groups of others are refused without a lookup."""
    everyone: bool = False

    def owner_of(self, text: str) -> str:
        """Returns the id of the consumer who may see a row with the text in its field.

        Returns EVERYONE when all consumers may see it by the rule, whatever the text is, and an empty text when only
        staff may.
        """
        if self.everyone:
            return EVERYONE
        return text if self.field and text != EVERYONE else ""

    def owner_by_group(self, group: str) -> str:
        """Returns the owner of an unreadable row: its group, if the rule names it; else only staff may know it."""
        return group if self.group else self.owner_of("")

    def has_rows_for(self, consumer: Consumer) -> bool:
        """Returns whether the store can have rows that the consumer may see."""
        return consumer.staff or self.everyone or self.field is not None

    def shows_all(self, consumer: Consumer) -> bool:
        """Returns whether a consumer that passes Question.check_group may see every row that the group ever had."""
        return consumer.staff or self.group or self.everyone


def check_staff(consumer: Consumer, subject: str) -> None:
    """Raises ForbiddenError, which says that the subject is for staff only, unless the consumer is staff."""
    if not consumer.staff:
        raise ForbiddenError(f"{subject} is for staff only")


def check_all_rows(consumer: Consumer, rule: OwnerRule, store: str) -> None:
    """Raises ForbiddenError unless the consumer may see the rows of all owners of the store."""
    if not rule.everyone:
        check_staff(consumer, f"reading all of the store {store}")


def may_see(consumer: Consumer, state: KeyState) -> bool:
    """Returns whether the consumer may see the state of the key. Everybody may see that there is no row."""
    if consumer.staff or state.row is None or state.owner == EVERYONE:
        return True
    return state.owner == consumer.id and bool(consumer.id)


def seen_by(consumer: Consumer, state: KeyState) -> KeyState:
    """Returns the state as a consumer who may see the row sees it, without the private fields of others."""
    return state.seen_whole() if consumer.staff else state.seen_by(consumer.id)
