"""Sends records from a pod, where Kafka can be reached from within a cluster alone."""

import base64
import json
import subprocess
from types import TracebackType
from typing import Self

from drivers.order_source import PRODUCER_SETTINGS
from testkit.kubernetes.cluster import Cluster
from testkit.waiting import scaled

PYTHON = "/opt/venv/bin/python"
BOOTSTRAP = "kafka:9092"
END_S = 30
SENDER = """
import base64, json, sys
from confluent_kafka import Producer

producer = Producer(json.loads(sys.argv[1]))
for line in sys.stdin:
    topic, key, value, timeout = json.loads(line)
    producer.produce(topic, key=base64.b64decode(key), value=base64.b64decode(value))
    print(producer.flush(timeout), flush=True)
"""
"""Runs in the pod: reads a record from each line and says how many are not acknowledged."""


class PodProducer:
    """A producer in a running pod of an image with confluent_kafka; `values` are those of all acknowledged records."""

    def __init__(self, cluster: Cluster, namespace: str, pod: str) -> None:
        """Does nothing before it is entered. `pod` may be `deployment/name`."""
        settings = json.dumps({"bootstrap.servers": BOOTSTRAP, **PRODUCER_SETTINGS})
        inside = [PYTHON, "-c", SENDER, settings]
        self._command = cluster.command("-n", namespace, "exec", "-i", pod, "--", *inside)
        self._waiting: list[tuple[str, bytes, bytes]] = []
        self.values: list[bytes] = []

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=scaled(END_S))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def produce(self, topic: str, value: bytes, key: bytes) -> None:
        """Takes a record that `flush` sends."""
        self._waiting.append((topic, value, key))

    def flush(self, timeout: float) -> int:
        """Sends the waiting records; returns how many are unacknowledged. Raises AssertionError if the pod is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        missing = 0
        for topic, value, key in self._waiting:
            record = [topic, base64.b64encode(key).decode(), base64.b64encode(value).decode(), timeout]
            self._process.stdin.write(json.dumps(record) + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
            assert answer, f"the pod that sends records has ended, with status {self._process.wait()}"
            missing += int(answer)
            self.values.append(value)
        self._waiting.clear()
        return missing
