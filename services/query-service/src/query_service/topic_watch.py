"""Reads from the broker which incarnation of each topic there is, and where the ends of its partitions are."""

import time
from collections.abc import Callable, Mapping
from threading import Event, Thread
from typing import Any

import structlog
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in its __all__

from query_service.outage import Outage
from query_service.view import Topic

_REQUEST_TIMEOUT_S = 3.0
_MASK = (1 << 64) - 1

_log = structlog.get_logger()

OnTopics = Callable[[dict[str, Topic]], None]
OnEnd = Callable[[str, int, int, float], None]


def position_epoch(most_significant_bits: int) -> int:
    """Returns the epoch of positions in a topic: the upper 63 bits of its id."""
    return (most_significant_bits & _MASK) >> 1


class TopicWatch:
    """One thread that asks for the ends often and for the topics every two seconds.

    A topic that is gone stays as it was last known: its rows are still the newest there are. A topic that was made
    anew has another id, and so another epoch.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: frozenset[str],
        interval_s: float,
        on_topics: OnTopics,
        on_end: OnEnd,
        describe_s: float = 2.0,
    ) -> None:
        """Both callbacks come from the thread; `on_end` gets topic, partition, end and the monotonic time of asking."""
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._names = sorted(topics)
        self._interval_s = interval_s
        self._describe_s = describe_s
        self._on_topics = on_topics
        self._on_end = on_end
        self._topics: dict[str, Topic] = {}
        self._missing: set[str] = set()
        self._outage = Outage("topics", bootstrap)
        self._stopping = Event()
        self._thread = Thread(target=self._run, name="topic-watch", daemon=True)

    def start(self) -> None:
        """Starts to ask."""
        self._thread.start()

    def stop(self, timeout_s: float) -> None:
        """Ends the thread."""
        self._stopping.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        next_description = 0.0
        while not self._stopping.wait(self._interval_s):
            try:
                if time.monotonic() >= next_description:
                    self._describe()
                    next_description = time.monotonic() + (self._describe_s if self._topics else self._interval_s)
                self._read_ends()
            except KafkaException as error:
                self._outage.failed(error)

    def _describe(self) -> None:
        described = self._admin.describe_topics(TopicCollection(self._names), request_timeout=_REQUEST_TIMEOUT_S)
        found = dict(self._topics)
        for name, future in described.items():
            try:
                found[name] = _kept(found.get(name), _topic(name, future.result()))
                self._missing.discard(name)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                self._note_missing(name)
        self._outage.answered()
        if found != self._topics:
            self._topics = found
            self._on_topics(dict(found))

    def _note_missing(self, name: str) -> None:
        if name not in self._missing:
            self._missing.add(name)
            _log.warning("the topic does not exist; waiting for it", topic=name)

    def _read_ends(self) -> None:
        if not self._topics:
            return
        asked_at = time.monotonic()
        wanted = {
            TopicPartition(topic.name, partition): OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types
            for topic in self._topics.values()
            for partition in range(topic.partitions)
        }
        ends: Mapping[TopicPartition, Any] = self._admin.list_offsets(
            wanted, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_REQUEST_TIMEOUT_S
        )
        for place, future in ends.items():
            try:
                end = future.result().offset
            except KafkaException as error:
                self._outage.failed(error)
                continue
            self._on_end(place.topic, place.partition, end, asked_at)


def _topic(name: str, description: Any) -> Topic:
    topic_id = description.topic_id
    epoch = position_epoch(topic_id.get_most_significant_bits())
    return Topic(name, str(topic_id), epoch, len(description.partitions))


def _kept(known: Topic | None, described: Topic) -> Topic:
    if known is None or known.topic_id != described.topic_id or known.partitions == described.partitions:
        return described
    _log.error(
        "the number of partitions has changed, so groups would change shards; make a new topic instead",
        topic=known.name,
        known=known.partitions,
        described=described.partitions,
    )
    return known
