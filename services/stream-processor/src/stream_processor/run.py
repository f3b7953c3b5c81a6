"""Runs pipelines until it is told to stop, or until one of them cannot go on."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Event

import structlog
from confluent_kafka import KafkaException

from stream_processor.checkpoint_claim import claim
from stream_processor.checkpoint_lock import lock
from stream_processor.contract import Contract
from stream_processor.dead_letter_limit import DeadLetterLimit
from stream_processor.errors import BrokerLostError
from stream_processor.health import Readiness
from stream_processor.metrics import Metrics
from stream_processor.pipeline import Pipeline
from stream_processor.plan import QueryPlan, plan, topics_of
from stream_processor.queries import QueryStarter
from stream_processor.session import start_session
from stream_processor.settings import Settings
from stream_processor.slots import choose_master, needed
from stream_processor.stop import stop
from stream_processor.topics import Topics, wait_for
from stream_processor.watch import SparkTasks, WatchedQuery, look_at_all

log = structlog.get_logger()

LOOK_AT_START_S = 0.25
LOOK_S = 1.0


@dataclass(frozen=True)
class Runner:
    """What a run needs of its surroundings; `stopping` ends it."""

    settings: Settings
    contract: Contract
    metrics: Metrics
    readiness: Readiness
    stopping: Event

    def run(self, pipelines: Sequence[Pipeline]) -> None:
        """Blocks until `stopping` is set. Raises StreamProcessorError when it cannot start or cannot go on."""
        topics = Topics(self.settings.kafka_bootstrap)
        wanted = topics_of(pipelines)
        if not wait_for(topics, wanted, self.stopping.wait, self.readiness.is_not):
            return
        try:
            partitions, ids = topics.partitions(wanted), topics.ids(wanted)
        except KafkaException as error:
            raise BrokerLostError(f"Kafka at {self.settings.kafka_bootstrap} went away: {error}") from error
        plans = plan(pipelines, partitions, self.settings.checkpoint_interval)
        with lock(self.settings.checkpoints):
            for each in plans:
                claim(self.settings.checkpoints, each, ids)
            self._run_limited(plans, dead_letter_limits(pipelines, topics, self.settings))

    def _run_limited(self, plans: Sequence[QueryPlan], limits: Sequence[DeadLetterLimit]) -> None:
        # Not counted, a limit would begin after what this run sets aside first.
        while not self._check(limits):
            if self.stopping.wait(LOOK_AT_START_S):
                return
        self._run_on_spark(plans, limits)

    def _run_on_spark(self, plans: Sequence[QueryPlan], limits: Sequence[DeadLetterLimit]) -> None:
        self.readiness.is_not("starting Spark")
        settings = self.settings
        spark = start_session(self._master(plans), settings.jars, settings.driver_memory, settings.java_options)
        starter = QueryStarter(spark, self.contract, settings.kafka_bootstrap, settings.checkpoints)
        tasks = SparkTasks(spark.sparkContext.statusTracker())
        queries: list[WatchedQuery] = []
        try:
            for each in plans:
                if self.stopping.is_set():
                    return
                queries.append(WatchedQuery(each, starter.start(each), tasks, self.metrics))
                log.info("started", query=each.name, source=each.source_topic, sink=each.sink_topic)
            self._supervise(queries, limits)
        finally:
            self.readiness.is_not("stopping")
            stop(spark, [each.query for each in queries])

    def _supervise(self, queries: Sequence[WatchedQuery], limits: Sequence[DeadLetterLimit]) -> None:
        pause = LOOK_AT_START_S
        while not self.stopping.wait(pause):
            look_at_all(queries, self.readiness)
            self._check(limits)
            if pause != LOOK_S and self.readiness.reason is None:
                pause = LOOK_S
                log.info("ready", queries=[each.plan.name for each in queries])

    def _check(self, limits: Sequence[DeadLetterLimit]) -> bool:
        """Whether the dead letters could be counted; a broker that is away for a moment is no reason to stop."""
        try:
            for limit in limits:
                limit.check(self.metrics)
        except KafkaException as error:
            log.warning("dead letters cannot be counted now", reason=str(error))
            return False
        return True

    def _master(self, plans: Sequence[QueryPlan]) -> str:
        realtime = [each.tasks for each in plans if each.realtime]
        slots = needed(realtime, any_micro_batch=len(realtime) < len(plans))
        self.metrics.slots.set(slots)
        master = choose_master(self.settings.master, slots, os.cpu_count() or 1)
        log.info("starting Spark", master=master, slots=slots)
        return master


def dead_letter_limits(pipelines: Sequence[Pipeline], topics: Topics, settings: Settings) -> list[DeadLetterLimit]:
    """One limit per source topic."""
    sources = dict.fromkeys(pipeline.definition.source.topic for pipeline in pipelines)
    return [DeadLetterLimit(source, pipelines, topics, settings.checkpoints) for source in sources]
