"""Reads from the broker which incarnation of each topic there is, and where the ends of its partitions are."""

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import structlog
from confluent_kafka import OFFSET_END, Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from query_service.cluster.outage import QUIET_CLIENT, Outage
from query_service.cluster.view import Topic

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
        client = {"bootstrap.servers": bootstrap, **QUIET_CLIENT}
        self._admin = AdminClient(client)
        # AdminClient.list_offsets needs half a minute to find its way after a restart of the broker; a consumer does
        # not. The group is required by the client, and never joined.
        self._ends_client = {**client, "group.id": "query-service.ends", "enable.auto.commit": False}
        self._consumer = Consumer(self._ends_client)
        self._ends_failed = False
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
                    self._renew()
                    next_description = time.monotonic() + (self._describe_s if self._topics else self._interval_s)
                self._read_ends()
            except KafkaException as error:
                self._outage.failed(error)
        self._consumer.close()

    def _renew(self) -> None:
        """Replaces a consumer that failed: one that asked while the broker was shutting down says for ever after that
        the partitions are unknown, whatever the broker answers."""
        if self._ends_failed:
            self._ends_failed = False
            self._consumer.close()
            self._consumer = Consumer(self._ends_client)

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
        places = [
            TopicPartition(topic.name, partition, OFFSET_END)  # "the offset at the time of the end": the end itself
            for topic in self._topics.values()
            for partition in range(topic.partitions)
        ]
        self._ends_failed = True
        found = self._consumer.offsets_for_times(places, timeout=_REQUEST_TIMEOUT_S)
        self._ends_failed = any(place.error is not None for place in found)
        for place in found:
            if place.error is None:
                self._on_end(place.topic, place.partition, place.offset, asked_at)
            else:
                self._outage.failed(place.error)


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
