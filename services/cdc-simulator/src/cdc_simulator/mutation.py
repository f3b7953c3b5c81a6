"""The mutations of rows."""

from typing import Any, NamedTuple

Row = Any
"""A named tuple whose first field is the primary key, the whole number `number`."""


class Insert(NamedTuple):
    """A row that is new in the table of that name."""

    table: str
    after: Row

    @property
    def operation(self) -> str:
        """As the change events call it."""
        return "create"


class Update(NamedTuple):
    """A row that changes; its primary key never does."""

    table: str
    before: Row
    after: Row

    @property
    def operation(self) -> str:
        """As the change events call it."""
        return "update"


class Delete(NamedTuple):
    """A row that goes."""

    table: str
    before: Row

    @property
    def operation(self) -> str:
        """As the change events call it."""
        return "delete"


Mutation = Insert | Update | Delete
