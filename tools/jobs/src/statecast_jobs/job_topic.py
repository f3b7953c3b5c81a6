"""The topic of jobs: writes this runner's records, and reads those of all runners in their order."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Protocol

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from google.protobuf.message import DecodeError
from typing_extensions import override

from statecast.jobs.v1.job_pb2 import JobRecord
from statecast.partitioning import partition_of
from statecast_jobs.errors import KafkaLostError
from statecast_service.kafka import KafkaSettings, connect, reason

TIMEOUT_S = 10
READ_S = 0.1
GROUP = "statecast-jobs"
"""It has no members and commits nothing; librdkafka wants the name of one, and looks for its coordinator."""
READ_RECORDS = 1000


class JobTopic(Protocol):
    """The topic by which the runners of a run coordinate."""

    def write(self, record: JobRecord, group: str) -> None:
        """Queues the record for the partition of the group; to be sure that it was written, read it back."""

    def read(self) -> AsyncGenerator[list[JobRecord] | None, None]:
        """Yields the run's records, in the order of each partition; None once all from before the start have come.

        Raises KafkaLostError when records cannot be read, or when one that was handed over may not have been written.
        """


class KafkaJobTopic(JobTopic):
    """The topic on Kafka. It must exist, and delete by time: compaction would leave only the last word on a row."""

    def __init__(self, kafka: KafkaSettings, topic: str, run: str, store: str) -> None:
        """Raises KafkaLostError when the topic cannot be reached."""
        self._topic, self._run, self._store, self._group = topic, run, store, kafka.group(GROUP)
        options = {"enable.idempotence": True, "acks": "all", "linger.ms": 0, "message.timeout.ms": TIMEOUT_S * 1000}
        self._producer = connect(Producer, kafka, options)
        consuming = {
            "group.id": GROUP,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
            "enable.partition.eof": True,
        }
        self._consumer = connect(Consumer, kafka, consuming)
        self._count = self._partitions()
        self._failure: KafkaLostError | None = None

    def _partitions(self) -> int:
        try:
            metadata = self._producer.list_topics(self._topic, TIMEOUT_S).topics[self._topic]
        except KafkaException as error:
            raise self._lost(error.args[0], "Describe") from error
        if metadata.error is not None:
            raise self._lost(metadata.error, "Describe")
        return len(metadata.partitions)

    @override
    def write(self, record: JobRecord, group: str) -> None:
        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self._failure = self._lost(error, "Write")

        key = f"{record.run}\0{record.store}".encode()
        partition = partition_of(group, self._count)
        try:
            self._producer.produce(self._topic, record.SerializeToString(), key, partition, on_delivery=delivered)
        except (KafkaException, BufferError) as error:
            raise KafkaLostError(f"the topic {self._topic} cannot be written: {error}") from error

    @override
    async def read(self) -> AsyncGenerator[list[JobRecord] | None, None]:
        behind, caught_up = set(range(self._count)), False
        self._consumer.assign([TopicPartition(self._topic, number, OFFSET_BEGINNING) for number in behind])
        try:
            while True:
                messages = await asyncio.to_thread(self._consumer.consume, READ_RECORDS, READ_S)
                if records := [record for each in messages if (record := self._record(each, behind)) is not None]:
                    yield records
                if not caught_up and not behind:
                    caught_up = True
                    yield None
                self._producer.poll(0)
                if self._failure is not None:
                    raise self._failure
        finally:
            self._producer.flush(TIMEOUT_S)
            self._consumer.close()

    def _record(self, message: Message, behind: set[int]) -> JobRecord | None:
        """Returns a message's record, unless it is of another run; the end of a partition takes it out of `behind`."""
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                behind.discard(message.partition() or 0)
                return None
            raise self._lost(error, "Read")
        try:
            record = JobRecord.FromString(message.value() or b"")
        except DecodeError as problem:
            where = f"{self._topic}, partition {message.partition()}, offset {message.offset()}"
            raise KafkaLostError(f"{where}: is no record of a job; name another --topic") from problem
        return record if (record.run, record.store) == (self._run, self._store) else None

    def _lost(self, error: KafkaError, operation: str) -> KafkaLostError:
        if error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED:
            why = reason(error, "Describe", self._group)
        else:
            why = reason(error, operation, self._topic)
        return KafkaLostError(f"the topic {self._topic} cannot be used: {why}; start the run again to go on with it")
