"""Writes the records of the cases, as producers of anybody do."""

from typing import Any

from confluent_kafka import Producer

from kit.case import Case, Record, Step, encoded
from kit.case import Producer as Settings
from kit.domain_files import topic_of
from testkit.waiting import scaled

TIMEOUT_S = 60.0
_PATIENT = {"transaction.timeout.ms": 900_000}
"""The broker ends no transaction that a case leaves open."""


class Producers:
    """The producers of all cases by their names, which stay open."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._producers: dict[tuple[str, str], Producer] = {}

    def produce(self, case: Case, step: Step) -> None:
        """Writes the step's records. Those of a transaction may wait for its flush or commit."""
        producer = self._of(case, step.by)
        for record in step.produce or ():
            for number in range(record.count):
                self._write(producer, case, record, number)
        if not self._settings(case, step.by).transactions:
            _flush(producer)

    def transact(self, case: Case, step: Step) -> None:
        """Begins, flushes or ends a transaction."""
        producer = self._of(case, step.by)
        match step.transaction:
            case "begin":
                producer.begin_transaction()
            case "flush":
                _flush(producer)
            case "commit":
                producer.commit_transaction(scaled(TIMEOUT_S))
            case "abort":
                producer.abort_transaction(scaled(TIMEOUT_S))

    @staticmethod
    def _write(producer: Producer, case: Case, record: Record, number: int) -> None:
        more: dict[str, Any] = {}
        if record.partition is not None:
            more["partition"] = record.partition
        if record.timestamp is not None:
            more["timestamp"] = record.timestamp
        if record.headers:
            more["headers"] = [(name, encoded(value, number)) for name, value in record.headers.items()]
        key, value = encoded(record.key, number), encoded(record.value, number)
        producer.produce(topic_of(case, record.topic), value, key, **more)
        producer.poll(0)

    @staticmethod
    def _settings(case: Case, name: str) -> Settings:
        return case.producers[name] if name else Settings()

    def _of(self, case: Case, name: str) -> Producer:
        if (case.name, name) not in self._producers:
            settings = self._settings(case, name)
            more = {"transactional.id": f"{case.name}-{name}", **_PATIENT} if settings.transactions else {}
            own = {"bootstrap.servers": self._bootstrap, "partitioner": settings.partitioner, "linger.ms": 5}
            producer = Producer({**own, **more})
            if settings.transactions:
                producer.init_transactions(scaled(TIMEOUT_S))
            self._producers[case.name, name] = producer
        return self._producers[case.name, name]


def _flush(producer: Producer) -> None:
    left = producer.flush(scaled(TIMEOUT_S))
    assert left == 0, f"{left} records were not written"
