"""Feeds records to a pipeline's real flow in micro-batches of Spark, with crashes between writing and committing."""

import base64
import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from google.protobuf.message import Message
from hypothesis import HealthCheck, settings
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.flow import written_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.outcomes import counted, observed
from testkit.topics import Record

KAFKA_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "headers array<struct<key:string,value:binary>>"
)
EPOCH = 1_000
T = TypeVar("T")
few_but_rich = settings(
    max_examples=2, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
"""For histories that go through a query, which takes seconds: chance gives others in each run."""


class MicroBatches:
    """One checkpoint over restarts; each value list of `add` is one micro-batch.

    `written` is all that the sink's topic would have got, `letters` all that those of dead letters would. `state_rows`
    are the rows that Spark's state held at the end. `outcomes` are how many records have ended in which way, each once.
    """

    def __init__(self, directory: Path, pipeline: Pipeline, spark: SparkSession, functions: Functions) -> None:
        self._source, self._checkpoint = directory / "source", directory / "checkpoint"
        self._source.mkdir(parents=True)
        self._pipeline = pipeline
        self._spark = spark
        self._functions = functions
        self._added = self._offset = 0
        self._counted = -1
        self.written: list[Record] = []
        self.letters: list[Record] = []
        self.state_rows = 0
        self.outcomes: Counter[str] = Counter()
        self._observations: dict[str, Counter[str]] = defaultdict(Counter)

    def add(self, values: Iterable[bytes | Message]) -> None:
        """Adds a micro-batch to those that `run` takes up."""
        encoded = (each.SerializeToString() if isinstance(each, Message) else each for each in values)
        self.add_records(Record(0, 0, b"", value, {}) for value in encoded)

    def add_records(self, records: Iterable[Record]) -> None:
        """Adds records with keys, headers and null values. Offsets count from 0, independent of the records."""
        self.add_tables(("t", record) for record in records)

    def add_tables(self, records: Iterable[tuple[str, Record]]) -> None:
        """Adds records with the topic that each record is of, which a table join reads apart."""
        self._add([_line(record, topic, 0, offset) for offset, (topic, record) in enumerate(records, self._offset)])

    def add_placed(self, records: Iterable[Record]) -> None:
        """Adds records with the partition, the offset and the time that each record has."""
        self._add([_line(record, "t", record.partition, record.offset) for record in records])

    def _add(self, lines: Sequence[Mapping[str, Any]]) -> None:
        self._added += 1
        self._offset += len(lines)
        hidden, file = self._source / f"_{self._added}", self._source / f"{self._added}.json"
        hidden.write_text("\n".join(map(json.dumps, lines)))
        os.utime(hidden, (self._added, self._added))
        hidden.rename(file)

    def run(self, crash_at: int | None = None) -> None:
        """Works off the added records; a crash comes after the batch of that number is written, before it is committed.

        Fails unless each record that was read has ended in one way.
        """

        def write(batch: DataFrame, number: int) -> None:
            for line in batch.collect():
                (self.written if line.topic == self._pipeline.sink_topic else self.letters).append(record_of(line))
            if number == crash_at:
                raise _Crash

        records = written_records(self._sources(), self._pipeline, 2, EPOCH, self._functions)
        writer = records.writeStream.foreachBatch(write).outputMode("update")
        query = writer.option("checkpointLocation", str(self._checkpoint)).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
            operators = query.lastProgress["stateOperators"] if query.lastProgress else []
            self.state_rows = sum(each["numRowsTotal"] for each in operators)
        except StreamingQueryException as error:
            if _Crash.__name__ not in str(error):
                raise
        self._count(query.recentProgress, crash_at)

    def _count(self, reports: Iterable[Mapping[str, Any]], crash_at: int | None) -> None:
        for progress in reports:
            if progress["batchId"] > self._counted:
                self._counted = progress["batchId"]
                self.outcomes.update(counted(progress))
                for name in progress["observedMetrics"]:
                    # Beside numbers there may be the key of a row, for the log.
                    numbers = {key: value for key, value in observed(progress, name).items() if isinstance(value, int)}
                    self._observations[name].update(numbers)
        if crash_at is None:
            assert self.outcomes.total() == self._offset, self.outcomes

    def _sources(self) -> list[DataFrame]:
        """Returns all that was added, or for a table join the records of each topic."""
        reader = self._spark.readStream.schema(KAFKA_COLUMNS).option("maxFilesPerTrigger", 1)
        topics = self._pipeline.source_topics
        sources = [reader.json(str(self._source)) for _ in topics]
        if len(topics) == 1:
            return sources
        return [records.where(F.col("topic") == topic) for records, topic in zip(sources, topics, strict=True)]

    def observed(self, name: str) -> dict[str, int]:
        """Returns the sums of an observation over all batches."""
        return dict(self._observations[name])

    def changelog_bytes(self, operator: int, batch: int) -> int:
        """Returns the bytes in the checkpoint of the state that a stateful operator changed in one batch.

        Operators and batches count from 0.
        """
        files = self._checkpoint.glob(f"state/{operator}/*/{batch + 1}*.changelog")
        return sum(file.stat().st_size for file in files)


PipelineOf: TypeAlias = Callable[..., Pipeline]
"""Makes a pipeline, with keys of its file replaced."""

BatchesOf: TypeAlias = Callable[[Pipeline], MicroBatches]
"""Makes the micro-batches of a pipeline, from a checkpoint of their own."""


def _line(record: Record, topic: str, partition: int, offset: int) -> dict[str, Any]:
    """Returns the record as Kafka's source gives it; a time of 0 is none."""
    headers = [{"key": name, "value": _base64(value)} for name, value in record.headers.items()]
    line = {"key": _base64(record.key), "value": record.value and _base64(record.value), "headers": headers}
    if record.time_ms:
        line["timestamp"] = datetime.fromtimestamp(record.time_ms / 1000, UTC).isoformat()
    return {**line, "topic": topic, "partition": partition, "offset": offset}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


class _Crash(Exception):  # noqa: N818  it is no error
    """Ends a batch as a kill would."""


def record_of(line: Row) -> Record:
    """Returns the record; the partition of a route's or a dead letter, which Kafka would choose, is 0."""
    value = None if line.value is None else bytes(line.value)
    headers = {each.key: bytes(each.value) for each in line.headers or []}
    return Record(line.asDict().get("partition") or 0, 0, bytes(line.key or b""), value, headers)


def pieces(values: Sequence[T], count: int) -> list[Sequence[T]]:
    """Returns the values in so many runs of about the same length."""
    size = -(-len(values) // count)
    return [values[start : start + size] for start in range(0, len(values), size)]
