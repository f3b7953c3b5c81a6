"""Logs once that the broker cannot be reached, and once that it can be again."""

from dataclasses import dataclass, field

import structlog

_log = structlog.get_logger()


@dataclass
class Outage:
    """The state of one connection; every loop that asks the broker has its own."""

    what: str
    bootstrap: str
    _failing: bool = field(default=False, init=False)

    def failed(self, reason: object) -> None:
        """Notes a failure; only the first of an outage is logged."""
        if not self._failing:
            self._failing = True
            _log.warning("kafka does not answer; waiting for it", what=self.what, at=self.bootstrap, reason=str(reason))

    def answered(self) -> None:
        """Notes an answer; only the first after an outage is logged."""
        if self._failing:
            self._failing = False
            _log.info("kafka answers again", what=self.what, at=self.bootstrap)
