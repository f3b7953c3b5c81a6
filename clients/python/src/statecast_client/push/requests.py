"""The frames of a client: packs its requests into as few frames as the edge accepts."""

import json
from collections.abc import Iterable
from typing import Any

from statecast_client.push.watches import Watch

MAX_REQUEST_BYTES = 65_536
"""The largest frame of a client, until `hello` names another size."""
_ENVELOPE = len('{"unwatch":,"watch":[]}')
_NUMBER = len("4294967295,")


class Requests:
    """The watches of this socket by number, and the requests that are still to be sent."""

    def __init__(self, watches: Iterable[Watch] = ()) -> None:
        """Begins a socket; all of `watches` have to be requested on it."""
        self.by_number: dict[int, Watch] = {}
        """The watches that were requested from the edge and that it has not ended."""
        self._number = 0
        self._unasked: dict[Watch, None] = dict.fromkeys(watches)
        self._unwatched: list[int] = []

    def watch(self, watch: Watch) -> None:
        """Adds a request for a watch, unless it was already sent."""
        if watch.number is None:
            self._unasked[watch] = None

    def unwatch(self, watch: Watch) -> None:
        """Adds a request to end a watch."""
        self._unasked.pop(watch, None)
        if watch.number is not None:
            self._unwatched.append(watch.number)
            self.ended(watch)

    def ended(self, watch: Watch) -> None:
        """Notes that a watch has ended at the edge, so that later frames with its number are not its own."""
        if watch.number is not None:
            del self.by_number[watch.number]
            watch.cut()

    def frames(self, max_bytes: int) -> list[str]:
        """Takes the waiting requests; returns frames of at most so many bytes."""
        fitting, ended = max((max_bytes - _ENVELOPE) // _NUMBER, 1), self._unwatched
        frames: list[dict[str, list[Any]]]
        frames = [{"unwatch": ended[start : start + fitting]} for start in range(0, len(ended), fitting)] or [{}]
        size = _ENVELOPE + len(text_of(frames[-1].get("unwatch", [])))
        for watch in self._unasked:
            self._number += 1
            self.by_number[self._number] = watch
            request = watch.request(self._number, max_bytes - _ENVELOPE)
            own = len(text_of(request)) + 1
            if size + own > max_bytes and frames[-1]:
                frames.append({})
                size = _ENVELOPE
            size += own
            frames[-1].setdefault("watch", []).append(request)
        self._unasked, self._unwatched = {}, []
        return [text_of(frame) for frame in frames if frame]


def text_of(frame: object) -> str:
    """Returns a frame, or a part of one, as JSON in ASCII."""
    return json.dumps(frame, separators=(",", ":"))
