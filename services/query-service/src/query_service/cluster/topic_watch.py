"""Reads from the broker which incarnation of each topic exists, and the end offsets of its partitions."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import confluent_kafka
import structlog
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from typing_extensions import override

from query_service.cluster.broker_thread import BrokerThread
from query_service.logged import Logged
from query_service.settings import Settings
from query_service.storage.progress import EndOffset
from query_service.storage.replica import TopicPartition
from query_service.storage.store_directory import Topic
from statecast.position import topic_epoch
from statecast_service.kafka import connect, reason

_REQUEST_TIMEOUT_S = 3.0

_MORE_PARTITIONS = (
    "the number of partitions has changed, so keys belong elsewhere: lookups of those that stand where they were are "
    "refused; make a new topic instead"
)

_log = structlog.get_logger()


@dataclass(eq=False, repr=False)
class TopicWatch(BrokerThread):
    """Asks for the ends of the `wanted` partitions often, and for the topics of `names` every two seconds.

    One that has joined the names is asked for at once.

    A topic that is gone keeps its last description: its rows are still the newest there are. A topic that was made
    anew has another id, and so another epoch. The thread calls `on_topics` with all topics after any has changed, and
    `on_end_offsets` after each round.
    """

    settings: Settings
    names: Callable[[], frozenset[str]]
    wanted: Callable[[], Collection[TopicPartition]]
    on_topics: Callable[[dict[str, Topic]], None]
    on_end_offsets: Callable[[dict[TopicPartition, EndOffset]], None]
    describe_s: float = 2.0

    def __post_init__(self) -> None:
        super().__init__("topic-watch", "topics", self.settings.kafka_bootstrap)
        self._admin = connect(AdminClient, self.settings)
        # AdminClient.list_offsets needs half a minute to find its way after a restart of the broker; a consumer does
        # not. The group is required by the client, and never joined.
        # Uncommitted, so that records behind an open transaction count.
        self._consumer_settings = {
            "group.id": f"{self.settings.group_id}.ends",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
        }
        self._consumer = connect(Consumer, self.settings, self._consumer_settings)
        self._end_offsets_failed = False
        self._topics: dict[str, Topic] = {}
        self._missing = Logged()
        self._asked: frozenset[str] = frozenset()

    @override
    def run(self) -> None:
        interval_s = self.settings.end_offsets_interval_ms / 1000
        next_description = 0.0
        while not self.stopping.wait(interval_s):
            try:
                if time.monotonic() >= next_description or not self.names() <= self._asked:
                    # First, so that the end offsets are read although a silent broker is asked for the description.
                    next_description = time.monotonic() + (self.describe_s if self._topics else interval_s)
                    self._describe()
                    if self._end_offsets_failed:
                        # One that asked while the broker was shutting down reports the partitions as unknown for ever.
                        self._consumer.close()
                        self._consumer = connect(Consumer, self.settings, self._consumer_settings)
                self._read_end_offsets()
            except KafkaException as error:
                self._admin.poll(0)  # says that the broker refuses the connection, if it does
                self.failed(error)
        self._consumer.close()

    def _describe(self) -> None:
        self._asked = self.names()
        asked = TopicCollection(sorted(self._asked))
        described = self._admin.describe_topics(asked, request_timeout=_REQUEST_TIMEOUT_S)
        topics = dict(self._topics)
        for name, future in described.items():
            try:
                topics[name] = _topic(name, future.result(), topics.get(name))
                self._missing.pop(name, None)
            except KafkaException as error:
                code = error.args[0].code()
                if code not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.TOPIC_AUTHORIZATION_FAILED):
                    raise
                if self._missing.is_new(name, code):
                    why = reason(error.args[0], "Read", name)
                    _log.warning("the topic does not exist; waiting for it", topic=name, reason=why)
        self.answered()
        if topics != self._topics:
            self._topics = topics
            self.on_topics(dict(topics))

    def _read_end_offsets(self) -> None:
        asked_at = time.monotonic()
        partitions = [
            confluent_kafka.TopicPartition(*wanted, OFFSET_END)  # "time" of the end: gives the end itself
            for wanted in self.wanted()
        ]
        if not partitions:
            return
        self._end_offsets_failed = True
        answers = self._consumer.offsets_for_times(partitions, timeout=_REQUEST_TIMEOUT_S)
        end_offsets = {}
        for answer in answers:
            if answer.error is None:
                end_offsets[answer.topic, answer.partition] = EndOffset(answer.offset, asked_at)
            else:
                self.failed(answer.error)
        self._end_offsets_failed = len(end_offsets) < len(answers)
        self.on_end_offsets(end_offsets)


def _topic(name: str, description: Any, previous: Topic | None) -> Topic:
    topic_id, partitions = description.topic_id, len(description.partitions)
    if previous is not None and previous.topic_id == str(topic_id) and previous.partitions != partitions:
        _log.error(_MORE_PARTITIONS, topic=name, known=previous.partitions, described=partitions)
    return Topic(name, str(topic_id), topic_epoch(topic_id.get_most_significant_bits()), partitions)
