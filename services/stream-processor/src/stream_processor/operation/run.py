"""Runs pipelines until they are stopped, or until one of them cannot go on."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import structlog
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from statecast_service.kafka import java_options
from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline
from stream_processor.errors import BrokerLostError, CheckpointsUnusableError
from stream_processor.metrics import Metrics, Readiness
from stream_processor.operation.checkpointed import CheckpointedGroup, CheckpointedOffsets
from stream_processor.operation.checkpoints import Checkpoints, claim, open_checkpoints
from stream_processor.operation.dead_letters import DeadLetterLimits, read_dead_letters
from stream_processor.operation.monitoring import WatchedQuery, look_at_all, running_tasks
from stream_processor.operation.output import Output, SinkTail, summary
from stream_processor.operation.plan import QueryPlan, access_of, choose_master, plan, slots_needed, topics_of
from stream_processor.operation.queries import prepare
from stream_processor.operation.session import drain, missing_slots, start_session, stop
from stream_processor.operation.starts import FirstLoads, Starts, within_limits
from stream_processor.operation.topics import (
    TOPICS_POLL_S,
    Topics,
    check_tables,
    wait_while_missing,
    with_record_limits,
)
from stream_processor.settings import Settings
from stream_processor.spark_internals import task_slots

log = structlog.get_logger()

SLOTS_POLL_S = 0.25
LOOK_AT_START_S = 0.25
LOOK_S = 1.0
SIGN_IN = "io.statecast.spark.PasswordFile"


@dataclass(frozen=True)
class Runner:
    """What a run takes; `stopping` ends it, and `show` takes a line for people at each look."""

    settings: Settings
    contract: Contract
    metrics: Metrics
    readiness: Readiness
    stopping: Event
    show: Callable[[str], object]

    def run(self, pipelines: Sequence[Pipeline]) -> None:
        """Blocks until `stopping` is set. Raises ServiceError when it cannot start or cannot go on."""
        topics = Topics(self.settings)
        names, needed = topics_of(pipelines), access_of(pipelines)
        if not self._wait(lambda: topics.missing(needed), TOPICS_POLL_S):
            return
        with self._broker():
            partitions, ids = topics.partitions(names), topics.ids(names)
            pipelines = with_record_limits(pipelines, topics.max_record_bytes)
            check_tables(pipelines, topics.config)
        plans = plan(pipelines, partitions, self.settings.checkpoint_interval)
        keyed = any(each.shuffle_partitions for each in plans)
        if keyed and not self._wait(CheckpointedGroup(self.settings).refused, TOPICS_POLL_S):
            return
        checkpoints = open_checkpoints(self.settings.checkpoints, partial(self._session, plans))
        with checkpoints.hold():
            with self._broker():
                plans = [replace(each, epoch=claim(checkpoints, each, ids, topics.highest_epoch)) for each in plans]
            read = partial(read_dead_letters, self.settings)
            limits = DeadLetterLimits(pipelines, topics.ends, read, checkpoints, self.stopping.is_set)
            # Not counted, a limit would begin after what this run sets aside first.
            if not self._wait(lambda: self._uncounted(limits), LOOK_AT_START_S) or self.stopping.is_set():
                return
            self._run_on_spark(plans, topics, limits, checkpoints)

    @contextmanager
    def _broker(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise BrokerLostError(f"Kafka at {self.settings.kafka_bootstrap} went away: {error}") from error

    def _run_on_spark(
        self, all_plans: Sequence[QueryPlan], topics: Topics, limits: DeadLetterLimits, checkpoints: Checkpoints
    ) -> None:
        plans = within_limits(all_plans, limits.too_many, self.metrics)
        spark = self._session(plans)
        queries: list[WatchedQuery] = []
        try:
            # A real-time query that does not find all its slots fails at once; executors come seconds after the driver.
            if not self._wait(lambda: missing_slots(task_slots(spark), slots_needed(plans)), SLOTS_POLL_S):
                return
            kafka = java_options(self.settings, SIGN_IN)
            with self._broker():
                loads = FirstLoads(all_plans, lambda name: not checkpoints.exists(name), topics.readable_ends)
            prepared = [(each, prepare(each, spark, self.contract, kafka, checkpoints)) for each in plans]
            tasks = partial(running_tasks, spark.sparkContext.statusTracker())
            self._supervise(Starts(prepared, loads, tasks, self.metrics, queries), plans, topics, limits, checkpoints)
            self.readiness.report("draining")
            self.show("draining")
            drain(spark, [each.query for each in queries], self.settings.drain_s)
        finally:
            self.show("")
            self.readiness.report("stopping")
            stop(spark, [each.query for each in queries])

    def _wait(self, missing: Callable[[], str | None], poll_s: float) -> bool:
        return wait_while_missing(missing, self.stopping.wait, self.readiness.report, poll_s)

    def _session(self, plans: Sequence[QueryPlan]) -> SparkSession:
        """Spark for these queries, which is started once."""
        self.readiness.report("starting Spark")
        slots = slots_needed(plans)
        self.metrics.slots.set(slots)
        master = choose_master(self.settings.master, slots, os.cpu_count() or 1)
        log.info("starting Spark", master=master, slots=slots)
        return start_session(self.settings, master)

    def _supervise(
        self,
        starts: Starts,
        plans: Sequence[QueryPlan],
        topics: Topics,
        limits: DeadLetterLimits,
        checkpoints: Checkpoints,
    ) -> None:
        sinks = {each.sink_topic: each.name for each in plans}
        keyed = [each.sink_topic for each in plans if each.shuffle_partitions]
        kafka = self.settings
        with closing(SinkTail(kafka, list(sinks))) as tail:
            checkpointed = CheckpointedOffsets(topics.ends, CheckpointedGroup(kafka).commit, starts.running)
            output, pause, ready = Output(tail.look, sinks, keyed, self.metrics), LOOK_AT_START_S, False
            while not self.stopping.wait(pause):
                checkpoints.check()
                look_at_all(starts.running, self.readiness, starts.start())
                if (uncounted := self._uncounted(limits)) is not None:
                    log.warning(uncounted)
                starts.stop_beyond_limits(limits.too_many)
                checkpointed.look()
                if pause == LOOK_S:
                    output.look()
                self.show(summary(self.metrics.registry, output, self.readiness.reason, time.time()))
                # A query may be held back for long, and the others have output meanwhile.
                pause = LOOK_S if all(each.started for each in starts.running) else pause
                if not ready and self.readiness.reason is None:
                    ready = True
                    log.info("ready", queries=[each.name for each in plans])

    def _uncounted(self, limits: DeadLetterLimits) -> str | None:
        """Why the dead letters cannot be counted now, such as an outage of a moment; None when they have been."""
        try:
            limits.check(self.metrics)
        except (KafkaException, CheckpointsUnusableError) as error:
            return f"dead letters cannot be counted now: {error}"
        return None
