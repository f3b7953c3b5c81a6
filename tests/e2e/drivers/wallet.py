"""Where a client gets its credentials from: short-lived ones, until nobody gives any more in time."""

from collections.abc import Callable, Mapping

Headers = Mapping[str, str]


class Wallet:
    """Returns headers when a client asks for them; remembers what for.

    `issue` makes credentials that are good for so many seconds. The first ones are `short`, and are renewed once in
    time; then no more can be had until they have expired, and the next ones are `long`.
    """

    def __init__(self, issue: Callable[[float], Headers], short_s: float, long_s: float) -> None:
        self._issue, self._short_s, self._long_s = issue, short_s, long_s
        self.needs: list[str] = []

    def __call__(self, need: str) -> Headers:
        """Headers for a need; RuntimeError when there are none."""
        self.needs.append(need)
        if need == "expiring" and self.needs.count(need) > 1:
            raise RuntimeError("nobody is there to sign in")
        return self._issue(self._long_s if need == "expired" else self._short_s)
