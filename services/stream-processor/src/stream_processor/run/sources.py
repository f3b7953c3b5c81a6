"""Watches the topics of running queries: each is still the topic that it was, and no transaction holds it back."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from confluent_kafka import KafkaException

from stream_processor.metrics import Metrics
from stream_processor.run.plan import START_ANEW, UNSEEN, QueryPlan, TopicState
from stream_processor.run.topics import Waiting

log = structlog.get_logger()

TRANSACTIONS_S = 10.0
"""Seconds between two looks for open transactions. A transaction that is open at two looks in a row is reported."""

MADE_ANEW = "its checkpoint is of other records; give the pipeline a new name and sink, which reads the topic anew"


@dataclass
class SourceWatch:
    """Compares topics with their state when their queries were planned.

    A topic that was deleted and recreated has the same name and other records, and Spark reads new partitions by
    itself. `states` gives those of topics that exist, `waiting` the records behind their open transactions; both may
    raise KafkaException. `clock` gives seconds.
    """

    states: Callable[[Iterable[str]], Mapping[str, TopicState]]
    waiting: Callable[[Iterable[str]], Mapping[str, Mapping[int, Waiting]]]
    metrics: Metrics
    clock: Callable[[], float] = time.monotonic
    _joined: dict[str, TopicState] = field(default_factory=dict, init=False)
    """The joined topics as the first of their queries was planned, and as the process follows them until it ends."""
    _due: float = field(default=0.0, init=False)
    _since: dict[tuple[str, int], int] = field(default_factory=dict, init=False)
    """The first offset of the transaction that was open at the last look, by topic and partition."""
    _told: set[tuple[str, int, int]] = field(default_factory=set, init=False)
    waiting_records: dict[str, int] = field(default_factory=dict, init=False)
    """By topic, how many records wait behind open transactions, as of the last look for them."""
    notes: list[str] = field(default_factory=list, init=False)
    """A line for people while Kafka does not answer, as of the last look."""

    def look(self, plans: Sequence[QueryPlan], ended: Collection[str] = ()) -> dict[str, str]:
        """Returns the reasons why queries must not go on, by their names.

        A broker that is away for a moment changes nothing. `ended` are the queries that have ended by themselves: in
        real time that is the first sign of the loss of a topic.
        """
        for plan in plans:
            for topic in plan.joined_topics:
                self._joined.setdefault(topic, plan.topics[topic])
        try:
            now = self.states({topic for each in plans for topic in each.topics})
            if self.clock() >= self._due:
                self._due = self.clock() + TRANSACTIONS_S
                sources = sorted({topic for each in plans for topic in each.source_topics})
                for topic, waiting in self.waiting(sources).items():
                    self._look_behind(topic, waiting)
                for topic in self.waiting_records.keys() - set(sources):
                    del self.waiting_records[topic]
                    self.metrics.waiting_records.remove(topic)
        except KafkaException as error:
            self.notes = [f"Kafka does not answer; the pipelines wait: {error}"]
            log.warning("cannot compare topics", reason=str(error))
            return {}
        self.notes = []
        reasons = {each.name: next(self._reasons(each, now, each.name in ended), None) for each in plans}
        return {name: reason for name, reason in reasons.items() if reason is not None}

    def _look_behind(self, topic: str, waiting: Mapping[int, Waiting]) -> None:
        self.waiting_records[topic] = sum(each.records for each in waiting.values())
        self.metrics.waiting_records.labels(topic).set(self.waiting_records[topic])
        for number, each in waiting.items():
            is_old = self._since.get((topic, number)) == each.since
            if is_old and (topic, number, each.since) not in self._told:
                self._told.add((topic, number, each.since))
                log.warning("records wait behind an open transaction", reason=_open(topic, number, each))
            self._since[topic, number] = each.since

    def _reasons(self, plan: QueryPlan, now: Mapping[str, TopicState], ended: bool) -> Iterator[str]:
        """Finds the reasons why the query must not go on with its topics as they are."""
        for topic, planned in plan.topics.items():
            before = self._joined.get(topic, planned) if topic in plan.joined_topics else planned
            after = now.get(topic, before)
            if after == UNSEEN:
                continue
            if ended and topic not in now:
                yield f"{topic} was deleted: {MADE_ANEW}"
            elif after.id != before.id:
                yield f"{topic} was deleted and recreated: {START_ANEW if topic in plan.joined_topics else MADE_ANEW}"
            elif after.partitions != before.partitions and (reason := plan.fixed_partitions(topic)) is not None:
                yield f"{topic} has {after.partitions} partitions and had {before.partitions}: {reason}"


def _open(topic: str, number: int, waiting: Waiting) -> str:
    return (
        f"partition {number} of {topic} has an open transaction since offset {waiting.since}: {waiting.records} "
        "records wait until its producer ends it, or Kafka after the time-out of the transaction"
    )
