"""Publishes which records of each keyed topic cannot be written again, so that readers need not keep their deletions.

They are the committed offsets of a consumer group that nobody joins, so that Kafka keeps them and its tools show them:
all records before the offset were made from changes that a completed checkpoint holds, and a replay begins after those.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]  # not in its __all__

from statecast_service.kafka import KafkaSettings, connect, denied, reason
from stream_processor.run.watch import Ends, WatchedQuery

log = structlog.get_logger()

CHECKPOINTED_GROUP = "stream-processor.checkpointed"
INTERVAL_S = 10.0
TIMEOUT_S = 5.0


class CheckpointedGroup:
    """The committed offsets of the group."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._admin = connect(AdminClient, kafka)
        self._group = kafka.group(CHECKPOINTED_GROUP)

    def refused(self) -> str | None:
        """Returns the permission that the ACLs deny, as a text for people; None when they allow it.

        Also returns None while no broker answers.
        """
        described = self._admin.describe_consumer_groups(
            [self._group], include_authorized_operations=True, request_timeout=TIMEOUT_S
        )
        try:
            allowed = AclOperation.READ in described[self._group].result().authorized_operations
        except KafkaException as error:
            allowed = error.args[0].code() != KafkaError.GROUP_AUTHORIZATION_FAILED
        return None if allowed else denied("Read", "group", self._group)

    def commit(self, topic: str, offsets: Ends) -> None:
        """Replaces the offsets of the topic's partitions. Blocks until the broker has them; raises KafkaException."""
        self._admin.poll(0)  # a password that was changed meanwhile is taken from its file here
        partitions = [TopicPartition(topic, number, offset) for number, offset in offsets.items()]
        request = ConsumerGroupTopicPartitions(self._group, partitions)
        [altered] = self._admin.alter_consumer_group_offsets([request], request_timeout=TIMEOUT_S).values()
        try:
            answers = altered.result().topic_partitions
        except KafkaException as error:
            raise KafkaException(reason(error.args[0], "Read", self._group)) from error
        for each in answers:
            if each.error is not None:
                raise KafkaException(reason(each.error, "Read", topic))


@dataclass
class CheckpointedOffsets:
    """Follows the checkpoints of those of the queries that write keyed topics; more queries may come.

    `ends` are those of the topics that exist, `readable_ends` those of a topic that readers reach, which are slower to
    find; `clock` gives seconds.

    The end of the topic is noted first, and then the ends of the sources. Every record before the topic's end was made
    from changes before the sources' ends, by this process or one before it. Once a checkpoint holds the sources' ends,
    the topic's end is published. A run begins by taking back the published ends of earlier runs: its checkpoint may be
    an older one, or none.
    """

    ends: Callable[[Iterable[str]], Mapping[str, Ends]]
    readable_ends: Callable[[str], Ends]
    commit: Callable[[str, Ends], object]
    queries: Sequence[WatchedQuery]
    clock: Callable[[], float] = time.monotonic
    _noted: dict[str, tuple[Ends, Mapping[str, Ends]]] = field(default_factory=dict, init=False)
    _writers: dict[str, WatchedQuery] = field(default_factory=dict, init=False)
    """The query that each topic was noted for. One that is started again may go on from an older checkpoint."""
    _due: float = field(default=0.0, init=False)

    def look(self) -> None:
        """Publishes the ends that are due, from time to time.

        A broker that is away for a moment is no reason to stop.
        """
        writers = [each for each in self.queries if each.plan.shuffles]
        if self.clock() < self._due and all(self._writers.get(each.plan.sink_topic) is each for each in writers):
            return
        self._due = self.clock() + INTERVAL_S
        try:
            # Asked in this order: records before the sinks' ends were made from changes before the sources' ends.
            sinks = self.ends([each.plan.sink_topic for each in writers])
            sources = self.ends({topic for each in writers for topic in each.plan.source_topics})
            for each in writers:
                if each.plan.sink_topic in sinks and sources.keys() >= {*each.plan.source_topics}:
                    self._look_at(each, sinks[each.plan.sink_topic], sources)
        except KafkaException as error:
            log.warning("cannot publish checkpointed offsets", reason=str(error))

    def _look_at(self, query: WatchedQuery, written: Ends, sources: Mapping[str, Ends]) -> None:
        sink = query.plan.sink_topic
        if self._writers.get(sink) is not query:
            self._noted.pop(sink, None)
            self._writers[sink] = query
        sink_ends, source_ends = self._noted.get(sink) or (dict.fromkeys(written, 0), {})
        if query.has_checkpointed(source_ends):
            self.commit(sink, sink_ends)
            self._noted[sink] = written, {topic: sources[topic] for topic in query.plan.source_topics}
        else:
            reached = {topic: self._reached(topic, ends, sources[topic]) for topic, ends in source_ends.items()}
            self._noted[sink] = sink_ends, reached

    def _reached(self, topic: str, noted: Ends, now: Ends) -> Ends:
        """Returns the noted ends as far as a reader comes.

        In a topic that nobody writes, a transaction's mark may be the last.
        """
        if noted != now:
            return noted
        readable = self.readable_ends(topic)
        return {number: min(end, readable[number]) for number, end in noted.items()}
