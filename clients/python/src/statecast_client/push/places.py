"""The rules of protocol 2 as one pure class: frames in, and rows, tokens and changes out.

Rows count at their token: a place collects what comes, and applies it with its next token, so that its rows are always
those of a token that it holds. docs/websocket-protocol.md has the rules.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from statecast_client.push.protocol import PushError, PushRefusedError, refusal_of

Path: TypeAlias = tuple[str, ...]
Frame: TypeAlias = Mapping[str, Any]
"""A frame of the edge, or a part of one, as its JSON has it."""


@dataclass(frozen=True)
class Row:
    """A row of a place."""

    key: str
    """Among the rows of its group; empty in a store with one row per group."""
    sort: str
    value: Any
    """The row as JSON, or of a store of JSON the document; with `fields` those of it alone."""
    skipped: int = 0
    """How many versions were left out since the last one, because somebody read too slowly."""
    commit_time: str | None = None
    """When the change was committed at its source, in RFC 3339; known with `times` alone."""


@dataclass(frozen=True)
class Change:
    """What has happened in a place, up to a token."""

    path: Path
    """The keys of the rows that lead to the place; empty for the watch itself."""
    rows: dict[str, Row] = field(default_factory=dict)
    """The rows that are new, or may be others now, by their keys."""
    left: dict[str, PushRefusedError | None] = field(default_factory=dict)
    """The keys of rows that were there and no longer are; with the error of a row that cannot be shown."""
    token: str = ""
    current: bool = False
    """Whether the watch, with all places below, has become complete by it."""
    ended: bool = False
    """Whether the place is no longer there: the row that leads to it has left."""

    def followed_by(self, newer: "Change") -> "Change":
        """Returns the one change that two of a place amount to."""
        rows = {key: row for key, row in self.rows.items() if key not in newer.left}
        for key, row in newer.rows.items():
            unread = rows.pop(key, None)
            rows[key] = row if unread is None else _after(unread, row)
        left = {key: why for key, why in self.left.items() if key not in newer.rows} | newer.left
        return Change(self.path, rows, left, newer.token, self.current or newer.current, newer.ended)


class Place:
    """The rows of a watch, or of a range below it, as of a token."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.token = ""
        """Everything through it is in `rows`; empty before the first."""
        self._fields: Frame = {}
        self._waiting: list[Frame] = []
        self._anew = True

    @property
    def is_anew(self) -> bool:
        """Whether its next token replaces all rows."""
        return self._anew

    def begin(self, watching: Frame) -> None:
        """Notes that the place begins: with its rows and what is newer, or anew."""
        self._fields = watching
        self._waiting, self._anew = [], not watching.get("resumed", False)

    def cut(self) -> None:
        """Forgets the rows that wait: the socket has ended before their token."""
        self._waiting, self._anew = [], not self.token

    def collect(self, rows: Iterable[Frame]) -> None:
        """Keeps rows until the next token."""
        self._waiting += rows

    def commit(self, path: Path, token: str) -> Change:
        """Applies the rows that wait; they are those of `token`. Raises PushError for a delta without its row."""
        held = {} if self._anew else self.rows
        change = Change(path, token=token)
        for frame in self._waiting:
            self._apply(frame, held, change)
        if self._anew:
            change.left.update({key: None for key in self.rows if key not in held and key not in change.left})
        self.rows, self.token = held, token
        self._waiting, self._anew = [], False
        return change

    def bookmark(self, token: str) -> None:
        """Takes a newer token of a place in which nothing has happened."""
        if self.token and not self._waiting:
            self.token = token

    def _apply(self, frame: Frame, held: dict[str, Row], change: Change) -> None:
        key = self._key_of(frame)
        if "row" in frame or "delta" in frame:
            held[key] = change.rows[key] = self._row_of(key, frame, held.get(key))
            change.left.pop(key, None)
            return
        change.rows.pop(key, None)
        if held.pop(key, None) is not None or key in self.rows or "error" in frame:
            change.left[key] = refusal_of(frame["error"]) if "error" in frame else None

    def _key_of(self, frame: Frame) -> str:
        key = frame.get("key")
        return str(_field(frame, self._fields.get("key_field")) if key is None else key)

    def _row_of(self, key: str, frame: Frame, before: Row | None) -> Row:
        if "row" in frame:
            value = frame["row"]
        elif before is None:
            raise PushError(f"the edge tells fields of the row `{key}`, which this client does not hold")
        else:
            gone = {name for name, each in frame["delta"].items() if each is None}
            value = {name: each for name, each in (before.value | frame["delta"]).items() if name not in gone}
        sort = frame.get("sort") or _field({"row": value}, self._fields.get("sort_field"))
        if not sort and before is not None:
            sort = before.sort
        return Row(key, str(sort), value, frame.get("skipped", 0), frame.get("commit_time"))


class Places:
    """The places of one watch: the watch itself at the empty path, and those below."""

    def __init__(self, resume: Frame | None = None) -> None:
        """Begins with what `saved` has returned, or with a page by REST. Raises PushError when it is neither."""
        self._places: dict[Path, Place] = {(): Place()}
        self.current = False
        """Whether everything has come since the watch began."""
        self.resumed: bool | None = None
        """Whether the watch itself went on from its token when it began last; None before."""
        if resume is not None:
            self._restore(resume)

    def __getitem__(self, path: Path) -> Place:
        return self._places[path]

    def __iter__(self) -> Iterator[Path]:
        return iter(self._places)

    def cut(self) -> None:
        """Notes that the socket, or the watch on it, has ended."""
        self.current = False
        for place in self._places.values():
            place.cut()

    def take(self, frame: Frame) -> list[Change]:
        """Takes a frame about the watch; returns what has changed by it. Raises PushError for a wrong one."""
        path = tuple(frame.get("path", ()))
        if "watching" in frame:
            self._begin(path, frame["watching"])
        changes: list[Change] = []
        place = self._places.get(path)
        if place is not None:
            rows = frame.get("rows", ())
            for row in rows:
                if row.get("left"):
                    changes += self._end((*path, row.get("key", "")))
            place.collect(rows)
            if frame.get("token"):
                changes += self._commit(path, place, frame["token"])
        if frame.get("current"):
            self.current = True
            changes.append(Change((), token=self._places[()].token, current=True))
        if path and "ended" in frame:
            changes += self._end(path)
        return changes

    def bookmark(self, bookmark: Frame) -> None:
        """Takes the newer token of a quiet place."""
        place = self._places.get(tuple(bookmark.get("path", ())))
        if place is not None:
            place.bookmark(bookmark["token"])

    def tokens(self) -> list[tuple[Path, str]]:
        """Returns the paths and tokens of the places to resume, the shortest paths first."""
        held = ((path, place.token) for path, place in self._places.items() if place.token)
        return sorted(held, key=lambda each: len(each[0]))

    def saved(self) -> dict[str, Any]:
        """Returns rows and tokens as JSON, to resume from."""
        places = [_saved(path, self._places[path]) for path, _ in self.tokens()]
        of_watch = next((place for place in places if not place["path"]), {})
        below = [place for place in places if place["path"]]
        return {name: each for name, each in of_watch.items() if name != "path"} | {"below": below}

    def _begin(self, path: Path, watching: Frame) -> None:
        place = self._places.setdefault(path, Place())
        place.begin(watching)
        if not path:
            self.resumed, self.current = not place.is_anew, False

    def _commit(self, path: Path, place: Place, token: str) -> list[Change]:
        was_anew = place.is_anew
        change = place.commit(path, token)
        if not was_anew:
            return [change]
        depth = len(path)
        below = {each[: depth + 1] for each in self._places if len(each) > depth and each[:depth] == path}
        gone = [each for each in below if each[depth] not in place.rows]
        return [change, *(ended for each in gone for ended in self._end(each))]

    def _end(self, path: Path) -> list[Change]:
        ended = [each for each in self._places if each[: len(path)] == path]
        places = [(each, self._places.pop(each)) for each in ended]
        return [Change(each, left=dict.fromkeys(place.rows), ended=True) for each, place in places]

    def _restore(self, resume: Frame) -> None:
        try:
            for each in ({**resume, "path": ()}, *resume.get("below", ())):
                place = self._places.setdefault(tuple(each["path"]), Place())
                place.begin({"resumed": True})
                place.collect(each.get("rows", ()))
                place.commit((), each["token"])
        except (AttributeError, KeyError, TypeError, PushError) as error:
            raise PushError("`resume` is neither `saved()` of a watch nor a page with rows and token") from error


def _saved(path: Path, place: Place) -> dict[str, Any]:
    rows = [{"key": row.key, "sort": row.sort, "row": row.value} for row in place.rows.values()]
    return {"path": [*path], "rows": rows, "token": place.token}


def _field(frame: Frame, name: str | None) -> Any:
    row = frame.get("row")
    return row.get(name, "") if name and isinstance(row, Mapping) else ""


def _after(unread: Row, newer: Row) -> Row:
    skipped = newer.skipped + unread.skipped + 1
    return Row(newer.key, newer.sort, newer.value, skipped, newer.commit_time)
