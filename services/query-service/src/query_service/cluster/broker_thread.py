"""Base class of the threads that ask the broker: ends them, and logs one line for each outage."""

from threading import Event, Thread

import structlog

_log = structlog.get_logger()


class BrokerThread(Thread):
    """Ends with the process at the latest; a subclass's `run` ends soon after `stopping` is set."""

    def __init__(self, name: str, asks_for: str, bootstrap: str) -> None:
        super().__init__(name=name, daemon=True)
        self.bootstrap = bootstrap
        self.stopping = Event()
        self._asks_for = asks_for
        self._failing = False

    def stop(self, timeout_s: float) -> None:
        """Ends the thread. Blocks until it has ended or the time is up."""
        self.stopping.set()
        self.join(timeout_s)

    def failed(self, reason: object) -> None:
        """Notes a failure; only the first of an outage is logged."""
        if not self._failing:
            self._failing = True
            about = {"what": self._asks_for, "at": self.bootstrap, "reason": str(reason)}
            _log.warning("kafka does not answer; waiting for it", **about)

    def answered(self) -> None:
        """Notes an answer; only the first after an outage is logged."""
        if self._failing:
            self._failing = False
            _log.info("kafka answers again", what=self._asks_for, at=self.bootstrap)
