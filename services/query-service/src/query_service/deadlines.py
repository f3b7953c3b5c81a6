"""When a call must have been answered."""

from typing import Protocol

_MARGIN_SHARE = 0.1
_MOST_MARGIN_S = 0.1


class Timed(Protocol):
    """A call that may have a deadline, as gRPC's contexts have it."""

    def time_remaining(self) -> float | None:
        """Returns the seconds left, or None without a deadline."""


def deadline_of(call: Timed, now: float, default_s: float) -> float:
    """Returns the time of the clock that `now` is from by which to answer.

    It lies a little before the caller's own, so that the caller gets the service's reason and not DEADLINE_EXCEEDED.
    """
    left = call.time_remaining()
    if left is None:
        return now + default_s
    return now + left - min(_MOST_MARGIN_S, max(left, 0.0) * _MARGIN_SHARE)
