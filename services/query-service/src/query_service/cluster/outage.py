"""Says once that the broker cannot be reached, and once that it can be again."""

import structlog

# What every client of the broker has: it says nothing itself, and comes back within a second of the broker.
QUIET_CLIENT: dict[str, str | int | float | bool] = {"log_level": 0, "reconnect.backoff.max.ms": 1000}

_log = structlog.get_logger()


class Outage:
    """The state of one connection; every loop that asks the broker has its own."""

    def __init__(self, what: str, bootstrap: str) -> None:
        """Names what is being asked for, and where."""
        self._what = what
        self._bootstrap = bootstrap
        self._since: str | None = None

    def failed(self, reason: object) -> None:
        """Notes a failure; only the first of an outage is logged."""
        if self._since is None:
            self._since = str(reason)
            _log.warning(
                "kafka does not answer; waiting for it", what=self._what, at=self._bootstrap, reason=self._since
            )

    def answered(self) -> None:
        """Notes an answer; only the first after an outage is logged."""
        if self._since is not None:
            self._since = None
            _log.info("kafka answers again", what=self._what, at=self._bootstrap)
