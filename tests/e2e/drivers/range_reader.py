"""A phone's view of a range: it keeps one row per member, by what the frames of the range say."""

import time
from datetime import UTC, datetime
from typing import Any

from drivers.gateway_client import Frame, OrderSocket
from testkit.waiting import scaled


def sort_value_of_now() -> str:
    """What sorts after everything that has been changed until now, in stores that are sorted by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def orders_of(customer: str) -> Frame:
    """The orders of a customer that change from now on."""
    return {"store": "orders-by-customer", "group": customer, "sort_from": sort_value_of_now(), "limit": 1000}


def watch_range(range_spec: Frame, after: Frame | None = None, interval_ms: int = 0) -> Frame:
    """The frame that asks for a range from its beginning, or after a position."""
    return {"watch_range": {"range": range_spec, "interval_ms": interval_ms} | ({"after": after} if after else {})}


class RangeReader:
    """Reads the only range of an open socket, which `request` starts, after the position `after` if it has one."""

    def __init__(self, watch: OrderSocket, request: Frame, after: Frame | None = None) -> None:
        self._watch = watch
        self.rows: dict[str, dict[str, Any]] = {}
        self.changes: list[tuple[str, str, str]] = []
        """Member, kind of change, and status of the row, in the order in which they were received."""
        self.offsets: list[int] = []
        """The offset of each, in the same order."""
        self.through: Frame | None = after
        """The position through which the range is complete; the range is resumed after it."""
        watch.send(request)
        began: Frame = watch.next()["range_watched"]
        self.range: Frame = began["range"]
        self.start: str = began["start"]

    def until(self, member: str, status: str | None, timeout_s: float = 30.0) -> None:
        """Reads on until the member's row has the status, or, for None, is not in the range any more.

        It stops where the phone can resume, so that nothing it has read is sent again.
        """
        deadline = time.monotonic() + scaled(timeout_s)
        while (left := deadline - time.monotonic()) > 0:
            changed = self._watch.next(left / scaled(1))["range_changed"]
            self._apply(changed)
            has_changed = any(name == member for name, _, _ in self.changes)
            if "through" in changed and has_changed and self.rows.get(member, {}).get("status") == status:
                return
        raise AssertionError(f"{member} never became {status}: {self.changes}")

    def of(self, member: str) -> list[tuple[str, str]]:
        """The changes of a member: kind and status."""
        return [(change, status) for name, change, status in self.changes if name == member]

    def _apply(self, changed: Frame) -> None:
        member, change = changed["key"]["member"], changed["change"].removeprefix("MEMBER_CHANGE_")
        row = changed.get("row", {})
        self.changes.append((member, change, row.get("status", "")))
        self.offsets.append(int(changed["position"]["offset"]))
        self.through = changed.get("through", self.through)
        if change == "LEFT":
            self.rows.pop(member, None)
        else:
            self.rows[member] = row
