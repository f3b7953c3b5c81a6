"""The session, as what it watches sees it."""

from typing import Protocol

from ws_edge.errors import EdgeError


class Desk(Protocol):
    """Where a session's keys and ranges say what concerns all of it. It neither blocks nor raises."""

    def fail(self, error: EdgeError, reference: str) -> None:
        """Says why a request failed."""

    def count(self) -> None:
        """Notes that more or less is watched."""

    def end(self, code: int, reason: str) -> None:
        """Ends the session with a close code."""
