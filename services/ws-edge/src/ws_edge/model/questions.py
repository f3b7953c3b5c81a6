"""The question of a watch: a range of a group, or a key, which is a range of one."""

from dataclasses import dataclass

from ws_edge.model.states import AnyKey, RangeKey
from ws_edge.model.stores import Store


@dataclass(frozen=True, slots=True)
class Question:
    """The first `limit` rows of a group, from `sort_from` to below `sort_to`; empty bounds are open.

    A store with one row per group has keys: its questions have the limit 1 and no bounds. `limit` is the one in force.
    """

    store: Store
    group: str
    sort_from: str = ""
    sort_to: str = ""
    limit: int = 1
    reverse: bool = False
    """True takes the last rows."""

    @property
    def is_key(self) -> bool:
        """Whether the group has one row."""
        return not self.store.members

    def __str__(self) -> str:
        bounds = "" if self.is_key else f"/[{self.sort_from}..{self.sort_to})"
        return f"{self.store.name}/{self.group}{bounds}"


def question_of(store: Store, key: AnyKey) -> Question:
    """Returns the question of a key or range, which has the limit in force."""
    return Question(store, *key[1:]) if isinstance(key, RangeKey) else Question(store, key.group)
