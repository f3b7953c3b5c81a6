"""A phone's view of a range, or of one in a channel: it keeps a row per key, by the frames, as of the last token."""

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from drivers.gateway_client import Frame, OrderSocket
from statecast_client.tokens import position_in
from testkit.waiting import scaled

ID = 1
"""The number of the watch, the first of its socket."""


class Held(NamedTuple):
    """The rows that a phone has of a range, by their keys, as of a token."""

    rows: Mapping[str, dict[str, Any]]
    token: str


def held_of(page: Frame) -> Held:
    """Returns the content of a page by REST."""
    return Held({row["key"]: row["row"] for row in page["rows"]}, page["token"])


def sort_value_of_now() -> str:
    """Returns a sort value after every change until now, for stores that are sorted by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def orders_of(customer: str) -> Frame:
    """Returns the orders of a customer that change from now on."""
    return {"store": "orders-by-customer", "group": customer, "sort_from": sort_value_of_now(), "limit": 1000}


def frames_with(socket: OrderSocket, part: str) -> Iterator[Frame]:
    """Yields the frames from now on that have a part."""
    while True:
        if part in (frame := socket.next()):
            yield frame


class RangeReader:
    """Reads a range on an open socket, which watches nothing else.

    It raises AssertionError when a row comes as it is held, but for the first rows of a resumption, which may.
    """

    def __init__(
        self, socket: OrderSocket, range_spec: Frame, held: Held | None = None, path: Sequence[str] = ()
    ) -> None:
        """Begins a watch with the fields of `range_spec`, after `held`. With a path it reads a place below."""
        self._socket, self._path = socket, list(path)
        self._key_field = ""
        self._waiting: list[Frame] = []
        self._has_begun = self._is_resumed = False
        self.rows: dict[str, dict[str, Any]] = dict(held.rows) if held else {}
        self.changes: list[tuple[str, str, str]] = []
        """Key, kind of change, and status of the row, in the order in which they were received."""
        self.offsets: list[int] = []
        """Those of the tokens, in the same order."""
        self.token = held.token if held else ""
        token = {"token": self.token} if held else {}
        resumed = {"below": [{"path": self._path, **token}]} if path and held else token
        socket.send({"watch": [{"id": ID, **range_spec, **resumed}]})
        next(frame for frame in self._frames() if "watching" in frame)

    @property
    def resumed(self) -> bool:
        """Whether it went on from its token when it began last."""
        return self._is_resumed

    @property
    def placed(self) -> set[str]:
        """The ids of the rows that are a test's own orders; the simulator gives its customers others meanwhile."""
        return {order_id for order_id in self.rows if order_id.startswith("test-")}

    @property
    def held(self) -> Held:
        """The rows and the token from which another socket can go on."""
        return Held(self.rows, self.token)

    def until(self, key: str, status: str | None, timeout_s: float = 30.0) -> None:
        """Reads on until the row has come with the status, or, for None, is not in the range any more."""
        frames = self._frames(time.monotonic() + scaled(timeout_s))
        while not self.of(key) or self._waiting or self.rows.get(key, {}).get("status") != status:
            assert next(frames, None), f"{key} never became {status}: {self.changes}"

    def of(self, key: str) -> list[tuple[str, str]]:
        """Returns the changes of a row: kind and status."""
        return [(change, status) for name, change, status in self.changes if name == key]

    def _frames(self, deadline: float = float("inf")) -> Iterator[Frame]:
        """Takes the frames about the range, and yields each."""
        while (left := deadline - time.monotonic()) > 0:
            frame = self._socket.next(min(left / scaled(1), 30.0))
            assert "ended" not in frame or frame.get("path"), f"the watch has ended: {frame}"
            if frame.get("id") == ID and frame.get("path", []) == self._path:
                self._take(frame)
                yield frame

    def _take(self, frame: Frame) -> None:
        if "watching" in frame:
            self._key_field = frame["watching"].get("key_field", "")
            self._waiting.clear()
            self._has_begun = False
            self._is_resumed = frame["watching"].get("resumed", False)
        self._waiting += frame.get("rows", ())
        if "token" in frame:
            self._commit(frame["token"])

    def _commit(self, token: str) -> None:
        if not self._has_begun and not self._is_resumed:
            self.rows.clear()
        for row in self._waiting:
            self._apply(row)
        self._waiting.clear()
        self._has_begun, self.token = True, token
        self.offsets.append(position_in(token)[0])

    def _apply(self, row: Frame) -> None:
        content = row.get("row", {})
        key: str = row.get("key") or content[self._key_field]
        before = self.rows.pop(key, None)
        if row.get("left"):
            if before is not None:
                self.changes.append((key, "LEFT", ""))
            return
        assert "row" in row, f"this is no whole row: {row}"
        assert content != before or not self._has_begun, f"{key} came again as it is held: {row}"
        kind = "ENTERED" if before is None else "REPEATED" if content == before else "CHANGED"
        self.changes.append((key, kind, content["status"]))
        self.rows[key] = content
