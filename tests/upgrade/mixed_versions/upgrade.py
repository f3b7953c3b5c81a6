"""Takes the processes of a stack from one version to another, and notes the clients' view at each step."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from drivers.order_load import OrderLoad
from drivers.order_readers import OrderReader

from local_stack.running_stack import RunningStack
from mixed_versions.versions import GATEWAY, PARTS, PROCESSOR, KeptWatches, Versions

HEADER = f"{'process':18}{'was':>8}{'is now':>8}{'reads':>8}{'failures':>10}{'gaps':>6}{'repeats':>9}   others"
READY_S = 180
INTERRUPTED = "TorrentBroadcast: Store broadcast"
"""Spark's log line about a batch that was being planned when the processor had to stop; it is planned again."""
CONNECTION_LOST = ("ConnectError", "ReadError", "RemoteProtocolError")


@dataclass
class Upgrade:
    """The stack, its load, and the table that is filled. `readers` read at all instances, `watches` are of releases."""

    stack: RunningStack
    versions: Versions
    load: OrderLoad
    table: list[str]
    readers: Sequence[OrderReader] = ()
    watches: list[KeptWatches] = field(default_factory=list)

    def to_head(self, name: str) -> None:
        """Starts a process again as HEAD."""
        self._restart(name, head=True)

    def to_last(self, name: str) -> None:
        """Starts a process again as the last release of its part."""
        self._restart(name, head=False)

    def _restart(self, name: str, *, head: bool) -> None:
        before, reads, failures = self.versions.current[name], self._reads(), len(self.failures())
        self.stack.stop(name)
        (self.versions.choose_head if head else self.versions.choose_last)(name)
        self.stack.start(name)
        self.stack.wait_ready(name, READY_S)
        if name == GATEWAY:
            self._forget_lost_connections()
        self.load.wait_changes()
        self.load.read_more()
        gaps, repeats = self.load.gaps(), self._repeats()
        others = " ".join(f"{each}={version}" for each, version in self.versions.current.items() if each != name)
        figures = f"{self._reads() - reads:8}{len(self.failures()) - failures:10}{gaps:6}{repeats:9}"
        self.table += [] if self.table else [HEADER]
        self.table.append(f"{name:18}{before:>8}{self.versions.current[name]:>8}{figures}   {others}")

    def _forget_lost_connections(self) -> None:
        """Leaves out reads that the only gateway took along when it ended; two would have taken turns."""
        for reader in self.load.readers:
            reader.failures[:] = [each for each in reader.failures if not each.startswith(CONNECTION_LOST)]

    def _reads(self) -> int:
        return sum(len(each.offsets) for each in self.load.readers) + sum(each.reads for each in self.readers)

    def failures(self) -> list[str]:
        """Returns all reads that failed or went back."""
        failed = [*(y for x in self.load.readers for y in x.failures), *(y for x in self.readers for y in x.failures)]
        return failed + [each for reader in self.readers for each in reader.backward]

    def _repeats(self) -> int:
        """Counts rows of orders that are no newer than the row before them."""
        watched = (*self.load.updates, *(watch.rows for watch in self.watches))
        rows = [(order_id, list(of_order)) for each in watched for order_id, of_order in each.items()]
        history = self.load.history  # after the rows, so that it has the change of each
        versions = [[history.version(order_id, row) for row in of_order] for order_id, of_order in rows]
        return sum(newer <= older for each in versions for older, newer in pairwise(each))

    def logged_errors(self) -> list[str]:
        """Returns each line of the services that is an error, or is a traceback."""
        files = [self.stack.directory.log_file(name) for name in (*PARTS, "supervisor") if name != GATEWAY]
        lines = [(file.stem, line) for file in files for line in file.read_text(errors="replace").splitlines()]
        return [f"{name}: {line}" for name, line in lines if _is_error(name, line)]

    def has_logged(self, name: str, text: str) -> bool:
        """Returns whether the log of a process has the text."""
        return text in self.stack.directory.log_file(name).read_text(errors="replace")


def _is_error(name: str, line: str) -> bool:
    if not line.startswith("{"):
        return line.startswith("Traceback") or (name == PROCESSOR and " ERROR " in line and INTERRUPTED not in line)
    return json.loads(line).get("level") in ("error", "critical")
