"""Runs pipelines until it is told to stop, or until one of them cannot go on."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import structlog
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import BrokerLostError, CheckpointsUnusableError
from stream_processor.metrics import Metrics
from stream_processor.operation.checkpoint_claim import claim
from stream_processor.operation.checkpoints import Checkpoints, open_checkpoints
from stream_processor.operation.dead_letter_limit import DeadLetterLimit
from stream_processor.operation.executors import SparkSlots, wait_for_slots
from stream_processor.operation.health import Readiness
from stream_processor.operation.notes import Notes
from stream_processor.operation.output import Output
from stream_processor.operation.plan import QueryPlan, plan, topics_of
from stream_processor.operation.queries import QueryStarter
from stream_processor.operation.session import start_session
from stream_processor.operation.sink_tail import SinkTail
from stream_processor.operation.slots import choose_master, needed
from stream_processor.operation.stop import drain, stop
from stream_processor.operation.summary import summary
from stream_processor.operation.topic_limits import TopicLimits, with_limits
from stream_processor.operation.topics import Topics, wait_for
from stream_processor.operation.watch import SparkTasks, WatchedQuery, look_at_all
from stream_processor.settings import Settings

log = structlog.get_logger()

LOOK_AT_START_S = 0.25
LOOK_S = 1.0


@dataclass(frozen=True)
class Runner:
    """What a run needs of its surroundings; `stopping` ends it, and `show` takes a line for people at each look."""

    settings: Settings
    contract: Contract
    metrics: Metrics
    readiness: Readiness
    stopping: Event
    show: Callable[[str], object] | None = None

    def run(self, pipelines: Sequence[Pipeline]) -> None:
        """Blocks until `stopping` is set. Raises StreamProcessorError when it cannot start or cannot go on."""
        topics = Topics(self.settings.kafka_bootstrap)
        wanted = topics_of(pipelines)
        if not wait_for(topics, wanted, self.stopping.wait, self.readiness.is_not):
            return
        try:
            partitions, ids = topics.partitions(wanted), topics.ids(wanted)
            pipelines = with_limits(pipelines, TopicLimits(self.settings.kafka_bootstrap))
        except KafkaException as error:
            raise BrokerLostError(f"Kafka at {self.settings.kafka_bootstrap} went away: {error}") from error
        plans = plan(pipelines, partitions, self.settings.checkpoint_interval)
        checkpoints = open_checkpoints(self.settings.checkpoints, partial(self._session, plans))
        with checkpoints.hold():
            plans = [replace(each, epoch=claim(checkpoints, each, ids)) for each in plans]
            self._run_limited(plans, dead_letter_limits(pipelines, topics, checkpoints), checkpoints)

    def _run_limited(
        self, plans: Sequence[QueryPlan], limits: Sequence[DeadLetterLimit], checkpoints: Checkpoints
    ) -> None:
        # Not counted, a limit would begin after what this run sets aside first.
        while not self._check(limits):
            if self.stopping.wait(LOOK_AT_START_S):
                return
        self._run_on_spark(plans, limits, checkpoints)

    def _run_on_spark(
        self, plans: Sequence[QueryPlan], limits: Sequence[DeadLetterLimit], checkpoints: Checkpoints
    ) -> None:
        spark = self._session(plans)
        starter = QueryStarter(spark, self.contract, self.settings.kafka_bootstrap, checkpoints)
        tasks = SparkTasks(spark.sparkContext.statusTracker())
        queries: list[WatchedQuery] = []
        try:
            if not wait_for_slots(SparkSlots(spark), self._slots(plans), self.stopping.wait, self.readiness.is_not):
                return
            prepared = [starter.prepare(each) for each in plans]
            for each, writer in zip(plans, prepared, strict=True):
                if self.stopping.is_set():
                    return
                queries.append(WatchedQuery(each, starter.start(each, writer), tasks, self.metrics))
                log.info("started", query=each.name, source=each.source_topic, sink=each.sink_topic)
            self._supervise(queries, limits, checkpoints)
            self.readiness.is_not("draining")
            self._show("draining")
            drain(spark, [each.query for each in queries], self.settings.drain_s)
        finally:
            self._show("")
            self.readiness.is_not("stopping")
            stop(spark, [each.query for each in queries])

    def _session(self, plans: Sequence[QueryPlan]) -> SparkSession:
        """Spark for these queries, which is started once."""
        self.readiness.is_not("starting Spark")
        settings, master = self.settings, self._master(self._slots(plans))
        return start_session(master, settings.jars, settings.driver_memory, settings.java_options)

    def _supervise(
        self, queries: Sequence[WatchedQuery], limits: Sequence[DeadLetterLimit], checkpoints: Checkpoints
    ) -> None:
        pause, output = LOOK_AT_START_S, self._output([each.plan for each in queries])
        while not self.stopping.wait(pause):
            checkpoints.check()
            look_at_all(queries, self.readiness)
            self._check(limits)
            if pause == LOOK_S:
                output.look()
            self._show(summary(self.metrics.registry, output, self.readiness.reason, time.time()))
            if pause != LOOK_S and self.readiness.reason is None:
                pause = LOOK_S
                log.info("ready", queries=[each.plan.name for each in queries])
        output.close()

    def _output(self, plans: Sequence[QueryPlan]) -> Output:
        bootstrap, queries = self.settings.kafka_bootstrap, {each.sink_topic: each.name for each in plans}
        keyed = [each.sink_topic for each in plans if each.shuffle_partitions]
        return Output(SinkTail(bootstrap, list(queries), Topics(bootstrap)), queries, keyed, self.metrics)

    def _show(self, line: str) -> None:
        if self.show is not None:
            self.show(line)

    def _check(self, limits: Sequence[DeadLetterLimit]) -> bool:
        """Whether the dead letters could be counted; who is away for a moment is no reason to stop."""
        try:
            for limit in limits:
                limit.check(self.metrics)
        except (KafkaException, CheckpointsUnusableError) as error:
            log.warning("dead letters cannot be counted now", reason=str(error))
            return False
        return True

    def _slots(self, plans: Sequence[QueryPlan]) -> int:
        realtime = [each.tasks for each in plans if each.realtime]
        slots = needed(realtime, any_micro_batch=len(realtime) < len(plans))
        self.metrics.slots.set(slots)
        return slots

    def _master(self, slots: int) -> str:
        master = choose_master(self.settings.master, slots, os.cpu_count() or 1)
        log.info("starting Spark", master=master, slots=slots)
        return master


def dead_letter_limits(pipelines: Sequence[Pipeline], topics: Topics, notes: Notes) -> list[DeadLetterLimit]:
    """One limit per source topic."""
    sources = dict.fromkeys(pipeline.definition.source.topic for pipeline in pipelines)
    return [DeadLetterLimit(source, pipelines, topics, notes) for source in sources]
