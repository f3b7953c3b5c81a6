"""Asks Kafka about topics, and waits until they and the executors are there."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar, cast

import structlog
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]  # not in its __all__
from google.protobuf.message import DecodeError

from statecast.state.v1.state_pb2 import StateRecord
from statecast_domains.row_topics import (
    CLEANUP_POLICY,
    COMPACTION_LAG,
    MIN_COMPACTION_LAG_MS,
    misread_topics,
)
from statecast_domains.values import EARLIEST, LATEST
from statecast_service.kafka import KafkaSettings, connect, denied, reason
from stream_processor.errors import ConfigurationError
from stream_processor.pipeline.pipeline import Pipeline, dead_letter_topic
from stream_processor.run.plan import UNSEEN, QueryPlan, TopicState, begun, plan, topics_of
from stream_processor.steps.decode import FETCH_WAIT_MS
from stream_processor.steps.encode import BESIDE_PAYLOAD, MAX_REQUEST_BYTES, TOMBSTONE_HEADER

log = structlog.get_logger()

T = TypeVar("T")

TOPICS_POLL_S = 0.5
LEADER_POLL_S = 0.1
LEADERLESS = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
"""Errors that a broker answers about a partition that was made a moment ago."""
LOG_AGAIN_S = 10.0
READER_GROUP = "stream-processor-replay"
"""Only named because Kafka's client needs one: no offset is ever committed to it."""
READ_BACK_FACTOR = 16
"""By how much each step back from the end of a topic is longer than the one before."""
MAX_RECORD_BYTES = "max.message.bytes"
MIN_RECORD_BYTES = 2 * BESIDE_PAYLOAD
"""A topic that takes less would refuse even some records without a payload."""


@dataclass(frozen=True)
class Waiting:
    """The records of a partition behind the first offset of an open transaction (`since`), which are not read yet."""

    since: int
    records: int


class Topics:
    """The topics that the broker at one address knows.

    Calls may block for `timeout_s`, and raise KafkaException when the broker does not answer within it.
    """

    def __init__(self, kafka: KafkaSettings, timeout_s: float = 5.0) -> None:
        self._kafka, self._bootstrap = kafka, kafka.kafka_bootstrap
        self._timeout_s = timeout_s
        self._admin = connect(AdminClient, kafka)

    def missing(self, access: Mapping[str, Iterable[str]]) -> str | None:
        """Returns why the topics cannot be used yet, as a text for people; None when they may be used as `access` says.

        `access` has operations, as Kafka calls them, by topic. Never raises.
        """
        return self.missing_of({"": access}).get("")

    def missing_of(self, accesses: Mapping[str, Mapping[str, Iterable[str]]]) -> dict[str, str]:
        """Returns the result of `missing` for each access, by name, where it is not None; by one request."""
        names = {topic for access in accesses.values() for topic in access}
        try:
            allowed = {
                name: _described(each, _allowed, set[str]()) for name, each in self._describe(names, True).items()
            }
        except KafkaException:
            self._admin.poll(0)  # says that the broker refuses the connection, if it does
            return dict.fromkeys(accesses, f"no answer from Kafka at {self._bootstrap}")
        reasons = {name: self._refusal(access, allowed) for name, access in accesses.items()}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _refusal(self, access: Mapping[str, Iterable[str]], allowed: Mapping[str, set[str] | None]) -> str | None:
        absent = sorted(name for name in access if allowed[name] is None)
        if absent:
            return f"no topic {', '.join(absent)} at {self._bootstrap}"
        for name in sorted(access):
            if refused := {*access[name]} - (allowed[name] or set()):
                return denied(", ".join(sorted(refused)), "topic", name)
        return None

    def states(self, names: Iterable[str]) -> dict[str, TopicState]:
        """Returns those of the topics that exist; UNSEEN for one that the ACLs hide."""
        self._admin.poll(0)  # a password that was changed meanwhile is taken from its file here
        states = {name: _described(future, _state, UNSEEN) for name, future in self._describe(names).items()}
        return {name: state for name, state in states.items() if state is not None}

    def _describe(self, names: Iterable[str], authorized: bool = False) -> dict[str, Any]:
        topics = TopicCollection(list(names))
        return self._admin.describe_topics(
            topics, include_authorized_operations=authorized, request_timeout=self._timeout_s
        )

    def ends(self, name: str) -> dict[int, int]:
        """Returns, by partition, the next offset, or an open transaction's first: nothing behind it is read yet."""
        return self._offsets(name, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # not annotated

    def ends_of(self, names: Iterable[str]) -> dict[str, dict[int, int]]:
        """Returns the `ends` of several topics, by two requests for all.

        Leaves out a topic that does not exist, is denied or has a partition without a leader: the others go on.
        """
        return self._all_offsets(names, OffsetSpec.latest())  # type: ignore[no-untyped-call]  # not annotated

    def starts(self, name: str, starting_offsets: str) -> dict[int, int] | None:
        """Returns, by partition, where the topic is begun (statecast_domains.values); None for its beginning."""
        if starting_offsets == EARLIEST:
            return None
        ends = self.ends(name)
        if starting_offsets == LATEST:
            return ends
        milliseconds = round(datetime.fromisoformat(starting_offsets).timestamp() * 1000)
        at = self._offsets(name, OffsetSpec.for_timestamp(milliseconds))
        # A partition without records since then has none to read yet.
        return {number: offset if offset >= 0 else ends[number] for number, offset in at.items()}

    def waiting(self, names: Iterable[str]) -> dict[str, dict[int, Waiting]]:
        """Returns, by topic and partition, the records that wait behind an open transaction; asks as `ends_of` does."""
        ends = self.ends_of(names)
        all_ends = self._all_offsets(ends, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)  # type: ignore[no-untyped-call]  # not annotated
        return {
            name: {
                number: Waiting(ends[name][number], end - ends[name][number])
                for number, end in now.items()
                if end > ends[name].get(number, end)
            }
            for name, now in all_ends.items()
        }

    def _offsets(self, name: str, which: OffsetSpec) -> dict[int, int]:
        answers = self._ask_offsets([name], which)
        if name not in answers:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"no topic {name}"))
        return {number: future.result().offset for number, future in answers[name].items()}

    def _all_offsets(
        self, names: Iterable[str], which: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[str, dict[int, int]]:
        offsets = {}
        for name, answers in self._ask_offsets(names, which, isolation).items():
            try:
                offsets[name] = {number: future.result().offset for number, future in answers.items()}
            except KafkaException as error:
                if error.args[0].code() < 0:  # an error of the client's own: no broker has answered
                    raise
                log.debug("cannot read the offsets of a topic", topic=name, reason=str(error))
        return offsets

    def _ask_offsets(
        self, names: Iterable[str], which: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    ) -> dict[str, dict[int, Any]]:
        """Returns the answer about each partition of those of the topics that exist and are not hidden."""
        counts = {name: state.partitions for name, state in self.states(names).items() if state != UNSEEN}
        requests = {TopicPartition(name, number): which for name, count in counts.items() for number in range(count)}
        answers: dict[str, dict[int, Any]] = {name: {} for name in counts}
        if requests:
            asked = self._admin.list_offsets(requests, isolation_level=isolation, request_timeout=self._timeout_s)
            for partition, future in asked.items():
                answers[partition.topic][partition.partition] = future
        return answers

    def readable_ends(self, name: str) -> dict[int, int]:
        """Returns, by partition, the offset after its last record.

        The end may be behind it, because aborted records and the markers of transactions have offsets too, and no
        reader gets them. Reads back from the end in steps that grow, until there is a record.
        """
        ends, readable, back = self.ends(name), dict[int, int](), 1
        while len(readable) < len(ends):
            starts = {number: max(end - back, 0) for number, end in ends.items() if number not in readable}
            for message in read_records(self._kafka, name, {**ends, **starts}):
                readable[cast(int, message.partition())] = cast(int, message.offset()) + 1
            readable = {number: 0 for number, start in starts.items() if start == 0} | readable
            back *= READ_BACK_FACTOR
        return readable

    def highest_epoch(self, name: str, last_only: bool) -> int:
        """Returns the highest epoch on a keyed topic, or among its partitions' last records; 0 when it holds none.

        Reads the whole topic unless `last_only`.
        """
        starts = {number: max(end - 1, 0) for number, end in self.ends(name).items()} if last_only else {}
        records = map(state_record, read_records(self._kafka, name, starts))
        return max((record.epoch for record in records if record is not None), default=0)

    def config(self, names: Iterable[str], key: str) -> dict[str, str]:
        """Returns the value of a key of the topics' configuration, by topic."""
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in set(names)]
        if not resources:
            return {}
        configs = self._admin.describe_configs(resources, request_timeout=self._timeout_s)
        return {each.name: str(future.result()[key].value) for each, future in configs.items()}


def _described(future: Any, of: Callable[[Any], T], hidden: T) -> T | None:
    """Returns `of` Kafka's description of a topic, `hidden` if the ACLs hide it; None when there is no such topic."""
    try:
        return of(future.result())
    except KafkaException as error:
        match error.args[0].code():
            case KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            case KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return hidden
        raise


def _state(described: Any) -> TopicState:
    return TopicState(str(described.topic_id), len(described.partitions))


def _allowed(described: Any) -> set[str]:
    """Returns the operations that the topic allows to this client."""
    return {each.name.title().replace("_", "") for each in described.authorized_operations}


def read_records(
    kafka: KafkaSettings, topic: str, starts: Mapping[int, int], timeout_s: float = 10.0
) -> Iterator[Message]:
    """Yields every record from `starts`, by default the first, to the ends of now. Raises KafkaException.

    Those of a partition come in their order. Records of transactions that were aborted, or are open, are left out, as
    Kafka's client does by itself.
    """
    group = {"group.id": READER_GROUP, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = connect(Consumer, kafka, {**group, "enable.partition.eof": True, "fetch.wait.max.ms": FETCH_WAIT_MS})
    try:
        unread, positions = {}, []
        for number in consumer.list_topics(topic, timeout=timeout_s).topics[topic].partitions:
            first, end = _bounds(consumer, TopicPartition(topic, number), timeout_s)
            offset = max(first, starts.get(number, first))
            if offset < end:
                unread[number] = end
                positions.append(TopicPartition(topic, number, offset))
        # All at once: a partition alone takes the client most of a second.
        consumer.assign(positions)
        while unread:
            message = _poll(consumer, topic, timeout_s)
            number, offset = cast(int, message.partition()), cast(int, message.offset())
            is_record = message.error() is None
            if is_record and offset < unread.get(number, 0):
                yield message
            # The client is slow to tell the end of the partition, which a transaction's marker may be.
            if number in unread and not (is_record and offset + 1 < unread[number]):
                del unread[number]
                consumer.incremental_unassign([TopicPartition(topic, number)])
    finally:
        consumer.close()


def _bounds(consumer: Consumer, partition: TopicPartition, timeout_s: float) -> tuple[int, int]:
    """Returns the first offset and the next one.

    Raises KafkaException, but waits for a leader for as long as `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return consumer.get_watermark_offsets(partition, timeout=timeout_s)
        except KafkaException as error:
            if error.args[0].code() not in LEADERLESS or time.monotonic() > deadline:
                raise
        time.sleep(LEADER_POLL_S)


def _poll(consumer: Consumer, topic: str, timeout_s: float) -> Message:
    """Returns the next record, or the end of a partition as an error.

    Raises KafkaException, which names an ACL that is missing.
    """
    while (message := consumer.poll(timeout_s)) is not None:
        error = message.error()
        if error is None or error.code() == KafkaError._PARTITION_EOF:
            return message
        # Partitions that are assigned are read without the group, which Kafka's client asks about all the same.
        if error.code() != KafkaError.GROUP_AUTHORIZATION_FAILED:
            raise KafkaException(reason(error, "Read", topic))
    raise KafkaException(f"no answer from Kafka within {timeout_s} s")


def headers_of(message: Message) -> list[tuple[str, bytes | None]]:
    """Returns the headers of a record; none if Kafka's client cannot read them."""
    try:
        return cast(list[tuple[str, bytes | None]], message.headers() or [])
    except SystemError:  # the client raises it for a header's name that is not UTF-8
        return []


def state_record(message: Message) -> StateRecord | None:
    """Returns the StateRecord of a record, which a tombstone has in a header; None for a record without one."""
    encoded = message.value()
    encoded = dict(headers_of(message)).get(TOMBSTONE_HEADER) if encoded is None else encoded
    try:
        return None if encoded is None else StateRecord.FromString(encoded)
    except DecodeError:
        return None


def fitted(pipeline: Pipeline, topics: Topics) -> Pipeline:
    """Returns the pipeline, knowing how large records its topics take. Raises KafkaException.

    Raises ConfigurationError for topics that do not suit it.
    """
    check_kept(pipeline, topics.config)
    return with_record_limits(pipeline, topics.config)


def planned(pipelines: Sequence[Pipeline], topics: Topics, checkpoint: timedelta | None) -> list[QueryPlan]:
    """Returns the queries of pipelines by the state of their topics; `checkpoint` overrides the files' intervals.

    Raises KafkaException.
    """
    states = topics.states(topics_of(pipelines))
    plans = plan(pipelines, {name: each.partitions for name, each in states.items()}, checkpoint)
    return [each.at(states) for each in begun(plans, topics.starts)]


def with_record_limits(pipeline: Pipeline, config: Callable[[Iterable[str], str], dict[str, str]]) -> Pipeline:
    """Returns the pipeline, knowing how large records its topics take. Raises KafkaException, ConfigurationError."""
    topics = [pipeline.sink_topic, *map(dead_letter_topic, pipeline.source_topics)]
    sizes = {topic: min(int(size), MAX_REQUEST_BYTES) for topic, size in config(topics, MAX_RECORD_BYTES).items()}
    for topic, size in sizes.items():
        if size < MIN_RECORD_BYTES:
            raise ConfigurationError(
                f"{topic} takes records of {size} bytes: set its {MAX_RECORD_BYTES} to at least {MIN_RECORD_BYTES}"
            )
    return pipeline.limited(sizes[pipeline.sink_topic] - BESIDE_PAYLOAD, sizes)


def check_kept(pipeline: Pipeline, config: Callable[[Iterable[str], str], dict[str, str]]) -> None:
    """Raises ConfigurationError for a source topic that is not kept as the pipeline reads it.

    A topic of changes or events that is compacted loses some, and a table's that is not compacted holds events. After a
    crash a query reads on from its last checkpoint: if the record of a table has been compacted away by which a row
    came into a group, of which readers know, nothing would tell them that it left. May raise KafkaException.
    """
    kept = [read for read in pipeline.readers if read.shuffles or read.events]
    for _, problem in misread_topics(pipeline.definition, config([read.source_topic for read in kept], CLEANUP_POLICY)):
        raise ConfigurationError(problem)
    for topic, lag in config([read.source_topic for read in kept if read.table], COMPACTION_LAG).items():
        if int(lag) < MIN_COMPACTION_LAG_MS:
            raise ConfigurationError(
                f"{topic} is read as a table, and may be compacted after {lag} ms: set its {COMPACTION_LAG} to longer "
                f"than the process may stand still, {MIN_COMPACTION_LAG_MS} at least"
            )


def wait_while_missing(
    missing: Callable[[], str | None],
    stopping: Callable[[float], bool],
    report: Callable[[str], None],
    poll_s: float,
) -> bool:
    """Blocks until nothing is missing (True), or until `stopping(seconds)`, which waits so long, says to stop (False).

    `missing` is asked every `poll_s` seconds; its text goes to `report`, and to the log when it changes or is old.
    """
    logged, logged_at = "", 0.0
    while (reason := missing()) is not None:
        report(reason)
        if reason != logged or time.monotonic() - logged_at > LOG_AGAIN_S:
            log.warning("waiting", reason=reason)
            logged, logged_at = reason, time.monotonic()
        if stopping(poll_s):
            return False
    return True
