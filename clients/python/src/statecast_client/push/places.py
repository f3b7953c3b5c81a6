"""The rules of protocol 2 as one pure class: frames in, and rows, tokens and changes out.

Rows count at their token: a place collects the rows that it receives, and applies them with its next token. So its rows
always match a token that it holds. docs/websocket-protocol.md has the rules.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from statecast_client.push.protocol import PushError, PushRefusedError, refusal_of

Path: TypeAlias = tuple[str, ...]
Frame: TypeAlias = Mapping[str, Any]
"""A frame of the edge, or a part of one, as its JSON has it."""


@dataclass(frozen=True)
class Row:
    """A row of a place."""

    key: str
    """The row's key within its group; empty in a store with one row per group."""
    sort: str
    value: Any
    """The row as JSON, or the document in a store of JSON; limited to `fields`, if the watch has any."""
    skipped: int = 0
    """How many versions were left out since the last one, because a reader was too slow."""
    commit_time: str | None = None
    """When the change was committed at its source, in RFC 3339; set only with `times`."""


@dataclass(frozen=True)
class Change:
    """The change of a place up to a token."""

    path: Path
    """The keys of the rows that lead to the place; empty for the watch itself."""
    rows: dict[str, Row] = field(default_factory=dict)
    """The rows that are new or may have changed, by key."""
    left: dict[str, PushRefusedError | None] = field(default_factory=dict)
    """The keys of rows that have left, each with the error if the row cannot be shown."""
    token: str = ""
    current: bool = False
    """Whether this change completes the watch, with all places below."""
    ended: bool = False
    """Whether the place has ended, because the row that leads to it has left."""

    def followed_by(self, newer: "Change") -> "Change":
        """Returns one change of the place that equals this one and the newer one."""
        rows = {key: row for key, row in self.rows.items() if key not in newer.left}
        for key, row in newer.rows.items():
            unread = rows.pop(key, None)
            rows[key] = row if unread is None else replace(row, skipped=row.skipped + unread.skipped + 1)
        left = {key: why for key, why in self.left.items() if key not in newer.rows} | newer.left
        return Change(self.path, rows, left, newer.token, self.current or newer.current, newer.ended)


class Place:
    """The rows of a watch, or of a range below it, as of a token."""

    def __init__(self) -> None:
        self.rows: dict[str, Row] = {}
        self.token = ""
        """The token of `rows`; empty before the first one."""
        self.is_anew = True
        """Whether the next token replaces all rows."""
        self._fields: Frame = {}
        self._waiting: list[Frame] = []

    def begin(self, watching: Frame) -> None:
        """Notes that the place begins: it goes on from its rows, or starts anew."""
        self._fields, self._waiting, self.is_anew = watching, [], not watching.get("resumed")

    def cut(self) -> None:
        """Forgets the rows that wait: the socket has ended before their token."""
        self._waiting, self.is_anew = [], not self.token

    def collect(self, rows: Iterable[Frame]) -> None:
        """Keeps rows until the next token."""
        self._waiting += rows

    def commit(self, path: Path, token: str) -> Change:
        """Applies the waiting rows, so that `rows` are as of `token`. Raises PushError for a delta without its row."""
        held, change = {} if self.is_anew else dict(self.rows), Change(path, token=token)
        for frame in self._waiting:
            key = str(frame.get("key", self._field(frame.get("row"), "key_field")))
            if "row" in frame or "delta" in frame:
                held[key] = change.rows[key] = self._row_of(key, frame, held.get(key))
                change.left.pop(key, None)
                continue
            change.rows.pop(key, None)
            if held.pop(key, None) is not None or key in self.rows or "error" in frame:
                change.left[key] = refusal_of(frame["error"]) if "error" in frame else None
        if self.is_anew:
            change.left.update({key: None for key in self.rows if key not in held and key not in change.left})
        self.rows, self.token, self._waiting, self.is_anew = held, token, [], False
        return change

    def bookmark(self, token: str) -> None:
        """Takes a newer token of a place without changes."""
        if not self.is_anew and not self._waiting:
            self.token = token

    def _row_of(self, key: str, frame: Frame, before: Row | None) -> Row:
        value = frame.get("row")
        if "delta" in frame:
            if before is None:
                raise PushError(f"the edge tells fields of the row `{key}`, which this client does not hold")
            gone = {name for name, each in frame["delta"].items() if each is None}
            value = {name: each for name, each in (before.value | frame["delta"]).items() if name not in gone}
        sort = frame.get("sort") or self._field(value, "sort_field") or (before.sort if before else "")
        return Row(key, str(sort), value, frame.get("skipped", 0), frame.get("commit_time"))

    def _field(self, row: Any, kind: str) -> Any:
        """Returns the content of the field that holds the row's key or sort value; an empty text if there is none."""
        name = self._fields.get(kind)
        return row.get(name, "") if name and isinstance(row, Mapping) else ""


class Places:
    """The places of one watch: the watch itself at the empty path, and those below."""

    def __init__(self, resume: Frame | None = None) -> None:
        """Begins with the result of `saved`, or with a page by REST. Raises PushError when it is neither."""
        self._places: dict[Path, Place] = {(): Place()}
        self.current = False
        """Whether everything has come since the watch began."""
        self.resumed: bool | None = None
        """Whether the watch itself resumed from its token when it last began; None before."""
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

    def forget_tokens(self) -> None:
        """Lets the watch begin anew: the rows stay until others replace them."""
        for place in self._places.values():
            place.token = ""
        self.cut()

    def take(self, frame: Frame) -> list[Change]:
        """Takes a frame about the watch; returns its changes. Raises PushError for a wrong one."""
        path, changes = tuple(frame.get("path", ())), list[Change]()
        if "watching" in frame:
            self._begin(path, frame["watching"])
        place, rows = self._places.get(path), frame.get("rows", ())
        if place is not None:
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
        saved: dict[str, Any] = {"below": []}
        for path, token in self.tokens():
            rows = [_saved(row) for row in self._places[path].rows.values()]
            if path:
                saved["below"].append({"path": [*path], "rows": rows, "token": token})
            else:
                saved |= {"rows": rows, "token": token}
        return saved

    def _begin(self, path: Path, watching: Frame) -> None:
        place = self._places.setdefault(path, Place())
        place.begin(watching)
        if not path:
            self.resumed, self.current = not place.is_anew, False

    def _commit(self, path: Path, place: Place, token: str) -> list[Change]:
        was_anew, depth, changes = place.is_anew, len(path), [place.commit(path, token)]
        if was_anew:
            for each in {each[: depth + 1] for each in self._places if len(each) > depth and each[:depth] == path}:
                changes += [] if each[depth] in place.rows else self._end(each)
        return changes

    def _end(self, path: Path) -> list[Change]:
        ended = [each for each in self._places if each[: len(path)] == path]
        return [Change(each, left=dict.fromkeys(self._places.pop(each).rows), ended=True) for each in ended]

    def _restore(self, resume: Frame) -> None:
        try:
            for each in ({**resume, "path": ()}, *resume.get("below", ())):
                place = self._places.setdefault(tuple(each["path"]), Place())
                place.begin({"resumed": True})
                place.collect(each.get("rows", ()))
                place.commit((), each["token"])
        except (AttributeError, KeyError, TypeError, PushError) as error:
            raise PushError("`resume` is neither `saved()` of a watch nor a page with rows and token") from error


def _saved(row: Row) -> Frame:
    time = {"commit_time": row.commit_time} if row.commit_time else {}
    return {"key": row.key, "sort": row.sort, "row": row.value, **time}
