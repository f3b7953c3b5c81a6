"""Which addresses of the query service have failed lately, and which one to call next."""

from collections.abc import Callable, Iterable, Sequence


class Addresses:
    """The configured addresses with a short memory for failures."""

    def __init__(self, configured: Sequence[str], clock: Callable[[], float], backoff: float) -> None:
        """An address that failed is asked last for `backoff` seconds."""
        self._configured = tuple(configured)
        self._clock = clock
        self._backoff = backoff
        self._failed_until: dict[str, float] = {}

    @property
    def configured(self) -> tuple[str, ...]:
        """The addresses from the settings."""
        return self._configured

    def choose(self, candidates: Iterable[str]) -> str:
        """The first candidate that has not failed lately, else the first such configured one, else the first of all."""
        wanted = (*candidates, *self._configured)
        if not self._failed_until:
            return wanted[0]
        now = self._clock()
        return next((address for address in wanted if self._failed_until.get(address, 0.0) <= now), wanted[0])

    def failed(self, address: str) -> bool:
        """The address did not answer; returns whether it answered the time before."""
        first = address not in self._failed_until
        self._failed_until[address] = self._clock() + self._backoff
        return first

    def answered(self, address: str) -> None:
        """The address answered."""
        self._failed_until.pop(address, None)
