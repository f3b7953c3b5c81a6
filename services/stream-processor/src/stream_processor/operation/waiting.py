"""Waits for what others have to bring, and says meanwhile what is missing."""

from collections.abc import Callable

import structlog

log = structlog.get_logger()

SAY_AGAIN_S = 10.0


def wait_while_missing(
    missing: Callable[[], str | None],
    stopping: Callable[[float], bool],
    report: Callable[[str], None],
    poll_s: float,
    clock: Callable[[], float],
) -> bool:
    """Blocks until nothing is missing (True), or until `stopping(seconds)`, which waits so long, says to stop (False).

    `missing` is asked every `poll_s` seconds; its text goes to `report`, and to the log when it changes or is old.
    """
    said, said_at = "", clock()
    while (reason := missing()) is not None:
        report(reason)
        if reason != said or clock() - said_at > SAY_AGAIN_S:
            log.warning("waiting", reason=reason)
            said, said_at = reason, clock()
        if stopping(poll_s):
            return False
    return True
