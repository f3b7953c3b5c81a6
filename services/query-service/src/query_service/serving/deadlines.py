"""When a call must have been answered."""

import math
from typing import Protocol

_MARGIN_SHARE = 0.1
_MOST_MARGIN_S = 0.1


class Timed(Protocol):
    """A call that may have a deadline, as gRPC's contexts have it."""

    def time_remaining(self) -> float | None:
        """Returns the seconds left, or None without a deadline."""


def deadline_of(call: Timed, now: float, default_s: float, most_s: float = math.inf) -> float:
    """Returns the time of the clock that `now` is from by which to answer, at most `most_s` away.

    It lies a little before the caller's own, so that the caller gets the service's reason and not DEADLINE_EXCEEDED.
    """
    left = call.time_remaining()
    if left is None:
        return now + min(default_s, most_s)
    return now + min(left - min(_MOST_MARGIN_S, max(left, 0.0) * _MARGIN_SHARE), most_s)
