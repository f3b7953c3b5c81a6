"""A real Kafka broker of a story's own, which it may restart."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from drivers.waiting import eventually
from local_stack import child_process
from local_stack.broker import Broker
from local_stack.ports import free_ports


class OwnBroker:
    """Keeps its data and its port from one start to the next."""

    def __init__(self, directory: Path) -> None:
        """Formats the storage; `start` runs the broker."""
        self._log = directory / "broker.log"
        port, controller_port = free_ports(2)
        self._broker = Broker(directory / "broker", port, controller_port)
        self._broker.prepare()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        """The bootstrap address, as `host:port`."""
        return self._broker.bootstrap

    def start(self) -> None:
        """Starts the broker and waits until it answers."""
        self._process = child_process.start(self._broker.command(), self._log)
        eventually(self._assert_answers, timeout_s=120)

    def stop(self) -> None:
        """Stops the broker in order."""
        if self._process is not None:
            child_process.stop(self._process.pid)
            self._process.wait()

    def _assert_answers(self) -> None:
        assert self._broker.answers(), self._log.read_text()[-2000:]


@contextmanager
def own_broker(directory: Path) -> Iterator[OwnBroker]:
    """A broker that answers, and ends with the context."""
    broker = OwnBroker(directory)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
