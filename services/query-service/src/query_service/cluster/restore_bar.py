"""One line on a terminal that shows how far a restore is."""

from typing import TextIO

from query_service.cluster.restore_watch import Restoring

_WIDTH = 30


class RestoreBar:
    """Draws over its own line again and again."""

    def __init__(self, terminal: TextIO) -> None:
        """Draws on this stream."""
        self._terminal = terminal

    def show(self, now: Restoring) -> None:
        """Draws the bar."""
        self._terminal.write(f"\x1b[K{bar(now)}\r")  # a log line that comes next is written over it
        self._terminal.flush()

    def clear(self) -> None:
        """Takes the bar away."""
        self._terminal.write("\x1b[K")
        self._terminal.flush()


def bar(now: Restoring) -> str:
    """Returns the line."""
    share = now.done / now.total if now.total else 1.0
    filled = int(share * _WIDTH)
    rate = now.done / now.seconds if now.seconds > 0 else 0.0
    left = f", {(now.total - now.done) / rate:,.0f} s left" if rate > 0 else ""
    return (
        f"restoring {now.partitions} partitions [{'#' * filled}{'.' * (_WIDTH - filled)}] {share:4.0%} "
        f"{now.done:,} of {now.total:,} records, {rate:,.0f}/s{left}"
    )
