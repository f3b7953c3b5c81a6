"""Drives a real `stream-processor run` for end-to-end tests, and reads what it wrote."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import psutil
from confluent_kafka import Consumer, Message, TopicPartition

PATIENCE_S = 240 * float(os.environ.get("TEST_TIMEOUT_SCALE", "1"))


def wait_until(condition: Callable[[], bool], what: Callable[[], str]) -> None:
    """Polls until the condition holds. Raises AssertionError with `what` when PATIENCE_S are over."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"in vain: {what()}")
        time.sleep(0.1)


class Processor:
    """One process at a time, over restarts, with one checkpoint directory and one log below `directory`."""

    def __init__(self, directory: Path, bootstrap: str, port: int, files: Iterable[Path], **settings: str) -> None:
        self._directory = directory
        self._url = f"http://127.0.0.1:{port}"
        self._command = [sys.executable, "-m", "stream_processor", "run", *(str(file) for file in files)]
        self._environment = {
            **os.environ,
            "STREAM_PROCESSOR_KAFKA_BOOTSTRAP": bootstrap,
            "STREAM_PROCESSOR_CHECKPOINTS": str(directory / "checkpoints"),
            "STREAM_PROCESSOR_METRICS_PORT": str(port),
            **{f"STREAM_PROCESSOR_{name.upper()}": value for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts the process, without waiting for anything."""
        with (self._directory / "log").open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603  the command is this package's own
                self._command, env=self._environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def command(self, name: str, *options: str) -> str:
        """Runs another command of the program on the same files to its end; what it said. Raises if it failed."""
        arguments = [*self._command[:3], name, *self._command[4:], *options]
        done = subprocess.run(  # noqa: S603  the command is this package's own
            arguments, env=self._environment, capture_output=True, text=True, check=False, timeout=PATIENCE_S
        )
        if done.returncode:
            raise AssertionError(done.stderr)
        return done.stdout + done.stderr

    @property
    def log(self) -> str:
        """Everything that the processes so far have said."""
        return (self._directory / "log").read_text()

    def get(self, path: str) -> tuple[int, str]:
        """The status and the text of an HTTP answer; status 0 when nobody listens."""
        try:
            with urllib.request.urlopen(self._url + path, timeout=5) as answer:  # noqa: S310  a local address
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def wait_ready(self) -> None:
        """Waits until /readyz says so."""
        wait_until(lambda: self.get("/readyz")[0] == 200 or self._running.poll() is not None, lambda: self.log)
        if self._running.poll() is not None:
            raise AssertionError(self.log)

    def wait_end(self) -> int:
        """Waits for the process to end by itself; its exit status."""
        return self._running.wait(PATIENCE_S)

    def terminate(self) -> int:
        """Asks the process to end; its exit status."""
        self._running.send_signal(signal.SIGTERM)
        return self._running.wait(PATIENCE_S)

    def kill(self) -> None:
        """Kills the driver with SIGKILL and waits until its JVM is gone too, which nobody else ends."""
        jvm = self.jvm()
        self._running.kill()
        self._running.wait()
        wait_until(lambda: not jvm.is_running(), lambda: f"the JVM {jvm} lives on")

    def jvm(self) -> psutil.Process:
        """Spark's JVM."""
        children = psutil.Process(self._running.pid).children(recursive=True)
        return next(child for child in children if child.name() == "java")

    def end(self) -> None:
        """Kills whatever is left."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise AssertionError("the process has not been started")
        return self._process


@dataclass(frozen=True)
class Record:
    """One record of a topic, its key as text."""

    key: str
    value: bytes | None
    headers: dict[str, bytes]


def read_all(bootstrap: str, topic: str) -> list[Record]:
    """Every record of the topic, partition by partition in order."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.partition.eof": True})
    partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    records: list[Record] = []
    unread = set(partitions)
    while unread:
        for message in consumer.consume(1000, timeout=1):
            if message.error() is None:
                records.append(_record(message))
            else:
                unread.discard(message.partition())
    consumer.close()
    return records


def _record(message: Message) -> Record:
    headers = cast(list[tuple[str, bytes]], message.headers() or [])
    return Record((message.key() or b"").decode(), message.value(), dict(headers))
