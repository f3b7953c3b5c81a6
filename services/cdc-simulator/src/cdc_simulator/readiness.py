"""Whether the simulator is ready, and if not, why."""


class Readiness:
    """Set by the thread that works, read by those that answer probes."""

    def __init__(self, reason: str) -> None:
        self.reason: str | None = reason
        """Why it is not ready; absent when it is."""
