"""A random model of an edge: at every token a client's rows are those of the place."""

import random
from typing import Any

import pytest

from statecast_client.push.places import Places

KEYS = "abcde"
FIELDS = ("x", "y", "z")
Rows = dict[str, dict[str, Any]]


class ModelStore:
    """A place that keeps all of its past states."""

    def __init__(self, chance: random.Random) -> None:
        self.states: list[Rows] = [{}]
        self.changed: list[dict[str, set[str] | None]] = [{}]
        """The changed keys of each state, with their fields; None for a row that has entered or left."""
        self._chance = chance

    def change(self) -> None:
        rows, key = dict(self.states[-1]), self._chance.choice(KEYS)
        names: set[str] | None = None
        if key not in rows:
            rows[key] = {"id": key} | {name: self._chance.random() for name in FIELDS}
        elif self._chance.random() < 0.2:
            del rows[key]
        else:
            names = {self._chance.choice(FIELDS) for _ in range(2)}
            rows[key] = rows[key] | {name: self._chance.random() for name in names}
        self.states.append(rows)
        self.changed.append({key: names})


class ModelEdge:
    """A socket to a slow client: rows in rounds, deltas of all changed fields, the token of the round's beginning."""

    def __init__(self, store: ModelStore, token: str, chance: random.Random) -> None:
        self._store, self._chance = store, chance
        self._read = self._ahead = len(store.states) - 1
        self._pending: dict[str, set[str] | None] = {}
        self._round: list[str] = []
        self._round_began = self._read
        offset = int(token.partition("+")[0]) if token else None
        remembered = offset is not None and chance.random() < 0.7
        self.watching = {"key_field": "id", **({"resumed": True} if remembered else {})}
        if remembered and offset is not None:
            newer = [key for changed in store.changed[offset + 1 :] for key in changed]
            self._pending = dict.fromkeys(newer)
        else:
            self._pending = dict.fromkeys(store.states[-1])
        self._round = list(self._pending)

    def frame(self) -> dict[str, Any]:
        """Returns some rows of the round; a token when it is complete."""
        self._hear()
        count = self._chance.randint(0, 2)
        keys, self._round = self._round[:count], self._round[count:]
        frame: dict[str, Any] = {"rows": [self._row(key) for key in keys]}
        if keys:
            self._ahead = self._read
        if not self._round:
            frame["token"] = f"{self._round_began}+{max(self._ahead - self._round_began, 0)}"
            self._round, self._round_began = list(self._pending), self._read
        return frame

    def _hear(self) -> None:
        while self._read < len(self._store.states) - 1:
            self._read += 1
            for key, names in self._store.changed[self._read].items():
                before = self._pending.get(key, set())
                self._pending[key] = None if names is None or before is None else before | names

    def _row(self, key: str) -> dict[str, Any]:
        names, row = self._pending.pop(key), self._store.states[self._read].get(key)
        if row is None:
            return {"key": key, "left": True}
        return {"row": row} if names is None else {"key": key, "delta": {name: row[name] for name in names}}


@pytest.mark.parametrize("seed", range(300))
def test_the_rows_at_a_token_are_those_of_the_place_at_that_token(seed: int) -> None:
    chance = random.Random(seed)
    store, places = ModelStore(chance), Places()
    edge, begins = ModelEdge(store, "", chance), True
    for _ in range(400):
        if chance.random() < 0.5:
            store.change()
        if chance.random() < 0.02:
            places = Places(places.saved()) if places[()].token and chance.random() < 0.3 else places
            places.cut()
            edge, begins = ModelEdge(store, places[()].token, chance), True
        frame = edge.frame() | ({"watching": edge.watching} if begins else {})
        begins = False
        places.take(frame)
        if "token" in frame:
            assert_rows_of(places, store)


def assert_rows_of(places: Places, store: ModelStore) -> None:
    """Asserts that each row is the version at the token's offset, or one of at most `ahead` offsets later."""
    offset, ahead = map(int, places[()].token.split("+"))
    possible = store.states[offset : offset + ahead + 1]
    rows = {key: row.value for key, row in places[()].rows.items()}

    for key in KEYS:
        assert rows.get(key) in [state.get(key) for state in possible]
