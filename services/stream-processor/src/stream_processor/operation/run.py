"""Runs pipelines until they are stopped, or until one of them cannot go on."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

import structlog
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession

from statecast_service.kafka import java_options
from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline, inputs_of
from stream_processor.errors import BrokerLostError, CheckpointsUnusableError
from stream_processor.metrics import Metrics, Readiness
from stream_processor.operation.additions import Additions, PipelineDirectories
from stream_processor.operation.checkpointed import CheckpointedGroup, CheckpointedOffsets
from stream_processor.operation.checkpoints import Checkpoints, claim, open_checkpoints
from stream_processor.operation.dead_letters import DeadLetterLimits, read_dead_letters
from stream_processor.operation.monitoring import WatchedQuery, look_at_all, running_tasks
from stream_processor.operation.output import Output, SinkTail, WrittenTopics, summary
from stream_processor.operation.plan import (
    QueryPlan,
    access_of,
    begun,
    choose_master,
    letters_apart,
    plan,
    slots_needed,
    topics_of,
)
from stream_processor.operation.queries import prepare
from stream_processor.operation.session import drain, missing_slots, start_session, stop
from stream_processor.operation.snapshots import Snapshots
from stream_processor.operation.sources import SourceWatch
from stream_processor.operation.starts import FirstLoads, Starts, without
from stream_processor.operation.topics import (
    TOPICS_POLL_S,
    Topics,
    check_kept,
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
    """Runs pipelines; `stopping` ends the run, and `show` takes a line for people at each look.

    Pipelines of new files in the `directories` are added to it.
    """

    settings: Settings
    contract: Contract
    metrics: Metrics
    readiness: Readiness
    stopping: Event
    show: Callable[[str], object]
    directories: Sequence[Path] = ()

    def run(self, pipelines: Sequence[Pipeline]) -> None:
        """Blocks until `stopping` is set. Raises ServiceError when it cannot start or cannot go on."""
        topics = Topics(self.settings)
        names, needed = topics_of(pipelines), access_of(pipelines)
        if not self._wait(lambda: topics.missing(needed), TOPICS_POLL_S):
            return
        with self._broker():
            states = topics.states(names)
            partitions = {name: each.partitions for name, each in states.items()}
            pipelines = with_record_limits(pipelines, topics.max_record_bytes)
            check_kept(pipelines, topics.config)
        keyed = any(each.shuffles for each in pipelines)
        if keyed and not self._wait(CheckpointedGroup(self.settings).refused, TOPICS_POLL_S):
            return
        planned = partial(plan, pipelines, partitions, self.settings.checkpoint_interval)
        # Which dead letters are written apart stands beside the checkpoints: Spark, if it reads them, starts for all.
        alone = [letters_apart(read) for each in pipelines for read in inputs_of(each)]
        most = planned(alone)
        checkpoints = open_checkpoints(self.settings.checkpoints, partial(self._session, most))
        with checkpoints.hold():
            plans = planned([name for name in alone if checkpoints.exists(name)])
            with self._broker():
                plans = begun(plans, topics.starts)
                plans = [each.at(states) for each in plans]
                plans = [replace(each, epoch=claim(checkpoints, each, topics.highest_epoch)) for each in plans]
            read = partial(read_dead_letters, self.settings)
            limits = DeadLetterLimits(pipelines, topics.ends_of, read, checkpoints, self.stopping.is_set)
            # Not counted, a limit would begin after what this run sets aside first.
            if not self._wait(lambda: self._uncounted(limits), LOOK_AT_START_S) or self.stopping.is_set():
                return
            self._run_on_spark(pipelines, plans, topics, limits, checkpoints)

    @contextmanager
    def _broker(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise BrokerLostError(f"Kafka at {self.settings.kafka_bootstrap} went away: {error}") from error

    def _run_on_spark(
        self,
        pipelines: Sequence[Pipeline],
        all_plans: Sequence[QueryPlan],
        topics: Topics,
        limits: DeadLetterLimits,
        checkpoints: Checkpoints,
    ) -> None:
        plans = without(all_plans, limits.too_many, self.metrics)
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
            starts = Starts(prepared, loads, tasks, self.metrics, queries, Snapshots(checkpoints))
            additions = Additions(
                PipelineDirectories(self.directories, [Path(each.file) for each in pipelines], self.settings),
                list(pipelines),
                list(plans),
                starts,
                topics,
                limits,
                checkpoints,
                self.settings,
                self.metrics,
                partial(task_slots, spark),
                lambda added, contract: prepare(added, spark, contract, kafka, checkpoints),
            )
            self._supervise(starts, plans, topics, limits, checkpoints, additions)
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
        spare = self.settings.spare_slots if self.directories else 0
        master = choose_master(self.settings.master, slots, os.cpu_count() or 1, spare)
        log.info("starting Spark", master=master, slots=slots)
        return start_session(self.settings, master)

    def _supervise(
        self,
        starts: Starts,
        plans: Sequence[QueryPlan],
        topics: Topics,
        limits: DeadLetterLimits,
        checkpoints: Checkpoints,
        additions: Additions,
    ) -> None:
        written, kafka = WrittenTopics(plans), self.settings
        with closing(SinkTail(kafka, written.topics)) as tail:
            checkpointed = CheckpointedOffsets(
                topics.ends_of, topics.readable_ends, CheckpointedGroup(kafka).commit, starts.running
            )
            output = Output(tail.look, written.queries, written.keyed, self.metrics)
            watch = SourceWatch(topics.states, topics.waiting, self.metrics)
            pause, ready = LOOK_AT_START_S, False
            while not self.stopping.wait(pause):
                checkpoints.check()
                if ready:
                    written.add(additions.look())
                    starts.drop_failed()
                # First: a query without its topic may have ended by itself, and would end the others.
                starts.stand_still(watch.look(starts.plans, starts.ended))
                look_at_all(starts.running, self.readiness, starts.start())
                if (uncounted := self._uncounted(limits)) is not None:
                    log.warning(uncounted)
                starts.stand_still(limits.too_many)
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
