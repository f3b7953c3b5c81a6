"""Runs records through the steps of a pipeline as one batch of Spark."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from google.protobuf.message import Message
from pyspark.sql import DataFrame, Row, SparkSession

from stream_processor.pipeline.pipeline import Pipeline, dead_letter_topic
from stream_processor.steps.dead_letters import OFFSET
from stream_processor.steps.decode import decode
from stream_processor.steps.flow import checked_changes, written_records
from stream_processor.steps.functions import Functions
from testkit.stream_processor.micro_batches import KAFKA_COLUMNS, record_of
from testkit.topics import Record

Value: TypeAlias = Message | bytes | None
Sent: TypeAlias = Value | tuple[bytes | None, Value] | tuple[bytes | None, Value, Mapping[str, bytes]] | DataFrame
"""A value under the key `key`, or a key, a value and perhaps headers; or all records at once."""

PARTITIONS = 4


@dataclass(frozen=True)
class OneBatch:
    """Records of the topic `orders` as one batch: each method takes them, and returns lines in the order of offsets."""

    spark: SparkSession
    functions: Functions

    def records(self, *values: Sent, time: datetime | None = None) -> DataFrame:
        """Returns records as Spark's Kafka source gives them, with offsets from 0, written at `time`."""
        rows = []
        for offset, value in enumerate(values):
            key, content, *headers = value if isinstance(value, tuple) else (b"key", value)
            encoded = content.SerializeToString() if isinstance(content, Message) else content
            rows.append((key, encoded, "orders", 0, offset, time, [*headers[0].items()] if headers else None))
        return self.spark.createDataFrame(rows, KAFKA_COLUMNS)

    def decoded(self, pipeline: Pipeline, *values: Sent) -> list[Row]:
        """Returns the records, decoded."""
        return decode(self._frame(values), pipeline, self.functions).orderBy("offset").collect()

    def checked(self, pipeline: Pipeline, *values: Sent) -> list[Row]:
        """Returns the records as checked changes."""
        return self._changes(pipeline, values).orderBy("offset").collect()

    def problems(self, pipeline: Pipeline, *values: Sent) -> list[str | None]:
        """Returns why each record cannot be used; None for one that can."""
        return [line.problem for line in self._changes(pipeline, values).orderBy("offset").select("problem").collect()]

    def lines(self, pipeline: Pipeline, *values: Sent, epoch: int = 1) -> DataFrame:
        """Returns all that is written, to a topic with PARTITIONS and to that of the dead letters."""
        return written_records([self._frame(values)], pipeline, PARTITIONS, epoch, self.functions)

    def written(self, pipeline: Pipeline, *values: Sent, epoch: int = 1) -> list[Row]:
        """Returns the lines for the pipeline's own topic, in no order."""
        return [
            each for each in self.lines(pipeline, *values, epoch=epoch).collect() if each.topic == pipeline.sink_topic
        ]

    def letters(self, pipeline: Pipeline, *values: Sent) -> list[Record]:
        """Returns the dead letters."""
        topic = dead_letter_topic(pipeline.source_topic)
        letters = [record_of(line) for line in self.lines(pipeline, *values).collect() if line.topic == topic]
        return sorted(letters, key=lambda letter: int(letter.headers[OFFSET]))

    def _changes(self, pipeline: Pipeline, values: tuple[Sent, ...]) -> DataFrame:
        return checked_changes(decode(self._frame(values), pipeline, self.functions), pipeline)

    def _frame(self, values: tuple[Sent, ...]) -> DataFrame:
        return values[0] if len(values) == 1 and isinstance(values[0], DataFrame) else self.records(*values)
