"""Runs pipelines until they are stopped, or until none of them can go on."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

import structlog
from confluent_kafka import KafkaException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast.descriptors import MessageTypes
from statecast_service.kafka import java_options
from stream_processor import shapes
from stream_processor.errors import BrokerLostError, CheckpointsUnusableError, TopicsMissingError
from stream_processor.metrics import Metrics, Readiness
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.additions import Additions, PipelineDirectories
from stream_processor.run.admission import RefusedFiles, sound_pipelines
from stream_processor.run.checkpointed import CheckpointedGroup, CheckpointedOffsets
from stream_processor.run.checkpoints import Checkpoints, claim, open_checkpoints
from stream_processor.run.first_loads import FirstLoads
from stream_processor.run.letters import DeadLetterLimits, read_dead_letters
from stream_processor.run.output import Output, SinkTail, summary
from stream_processor.run.plan import FORMER_PARALLELISM, QueryPlan, access_of, choose_master, slots_needed
from stream_processor.run.queries import Prepared, prepare
from stream_processor.run.restarts import DayClock, Restarts
from stream_processor.run.session import drain, missing_slots, start_session, stop
from stream_processor.run.snapshots import Snapshots
from stream_processor.run.sources import SourceWatch
from stream_processor.run.starts import Slots, Starts, Waiting, check_any_left
from stream_processor.run.topics import TOPICS_POLL_S, Topics, fitted, planned, wait_while_missing
from stream_processor.run.watch import WatchedQuery, living_spark, look_at_all
from stream_processor.settings import Settings
from stream_processor.spark_internals import running_tasks, task_slots

log = structlog.get_logger()

SLOTS_POLL_S = 0.25
LOOK_AT_START_S = 0.25
LOOK_S = 1.0
SIGN_IN = "io.statecast.spark.session.PasswordFile"


@dataclass(frozen=True)
class Runner:
    """Runs pipelines; `stopping` ends the run, and `show` takes a line for people at each look.

    Pipelines of new files in the `directories` are added to it, those of changed ones started again, and those of files
    that go are ended.
    """

    settings: Settings
    contract: Contract
    metrics: Metrics
    readiness: Readiness
    stopping: Event
    show: Callable[[str], object]
    directories: Sequence[Path] = ()

    def run(self, files: Sequence[Path]) -> None:
        """Blocks until `stopping` is set. Raises ServiceError when no pipeline can start or go on."""
        directories = PipelineDirectories(self.directories, files, self.settings)
        refused, topics = RefusedFiles(self.metrics), Topics(self.settings)
        pipelines = sound_pipelines(files, self.contract, refused)
        refused.check_any_left(pipelines)
        absent = self._wait_for_topics(pipelines, topics)
        if absent is None:
            return
        for each in pipelines:
            if (reason := absent.get(each.name)) is not None:
                refused.refuse(Path(each.file), TopicsMissingError(reason))
        pipelines = [each for each in pipelines if each.name not in absent]
        with self._broker():
            pipelines = list(_fitted(pipelines, topics, refused))
            refused.check_any_left(pipelines)
            all_plans = planned(pipelines, topics, self.settings.checkpoint_interval)
        keyed = any(each.shuffles for each in pipelines)
        if keyed and not self._wait(CheckpointedGroup(self.settings).refused, TOPICS_POLL_S):
            return
        # Only the notes beside the checkpoints say how many parts a state has.
        largest = [each.going_on(FORMER_PARALLELISM) for each in all_plans]
        checkpoints = open_checkpoints(self.settings.checkpoints, partial(self._session, largest))
        with checkpoints.hold():
            with self._broker():
                plans = list(_claimed(all_plans, topics, checkpoints, refused))
            refused.check_any_left(plans)
            pipelines = [each.pipeline for each in plans]
            read = partial(read_dead_letters, self.settings)
            limits = DeadLetterLimits(pipelines, topics.ends_of, read, checkpoints, self.stopping.is_set)
            # Not counted, a limit would begin after the first records that this run sets aside.
            if not self._wait(lambda: self._uncounted(limits), LOOK_AT_START_S) or self.stopping.is_set():
                return
            check_any_left(plans, limits.too_many)
            self._run_on_spark(plans, topics, limits, checkpoints, refused, directories)

    def _wait_for_topics(self, pipelines: Sequence[Pipeline], topics: Topics) -> dict[str, str] | None:
        """Waits until all topics are there, or for `topics_wait_s` once a pipeline has its own; None to stop.

        Returns why the topics of the other pipelines cannot be used, by their names.
        """
        accesses = {each.name: access_of([each]) for each in pipelines}
        absent, until = dict[str, str](), float("inf")

        def missing() -> str | None:
            nonlocal absent, until
            absent = topics.missing_of(accesses)
            if len(absent) < len(accesses):
                until = min(until, time.monotonic() + self.settings.topics_wait_s)
            if not absent or time.monotonic() >= until:
                return None
            return topics.missing(access_of(pipelines))

        return absent if self._wait(missing, TOPICS_POLL_S) else None

    @contextmanager
    def _broker(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise BrokerLostError(f"Kafka at {self.settings.kafka_bootstrap} went away: {error}") from error

    def _run_on_spark(
        self,
        claimed: Sequence[QueryPlan],
        topics: Topics,
        limits: DeadLetterLimits,
        checkpoints: Checkpoints,
        refused: RefusedFiles,
        directories: PipelineDirectories,
    ) -> None:
        spark = self._session(claimed)
        queries: list[WatchedQuery] = []
        try:
            # A real-time query that does not find all its slots fails at once; executors come seconds after the driver.
            needed = slots_needed(claimed)
            if not self._wait(lambda: missing_slots(task_slots(spark)[0], needed), SLOTS_POLL_S):
                return
            kafka = java_options(self.settings, SIGN_IN)

            def slots() -> Slots:
                with living_spark():
                    return Slots(*task_slots(spark))

            def prepared(plan: QueryPlan, contract: Contract) -> DataStreamWriter:
                return prepare(plan, spark, contract, kafka, checkpoints)

            def prepared_again(plan: QueryPlan) -> Prepared:
                contract = Contract(self.settings.with_descriptors(MessageTypes.read).descriptor_set)
                again = claim(checkpoints, renewed(plan, contract, topics), topics.highest_epoch)
                return again, prepared(again, contract)

            # Each takes Spark a second or more while its code is cold.
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                preparing = {each.name: threads.submit(prepared, each, self.contract) for each in claimed}
            writers = {}
            for each in claimed:
                with refused.refusing(Path(each.pipeline.file)):
                    writers[each.name] = preparing[each.name].result()
            plans = [each for each in claimed if each.name in writers]
            refused.check_any_left(plans)
            starts = Starts(
                [Waiting(each, writers[each.name]) for each in plans],
                FirstLoads(plans, lambda name: not checkpoints.exists(name), topics.readable_ends, refused.tables),
                self.metrics,
                Restarts(self.settings.max_failures),
                prepared_again,
                lambda late: topics.missing_of({each.name: access_of([each.pipeline]) for each in late}),
                slots,
                queries,
                Snapshots(checkpoints),
            )
            starts.hold_to_limits(limits.too_many)
            directories.keep([Path(each.pipeline.file) for each in plans])
            additions = Additions(
                directories,
                refused,
                list(plans),
                starts,
                topics,
                limits,
                checkpoints,
                self.settings,
                self.metrics,
                lambda: slots().offered,
                prepared,
            )
            self._supervise(starts, running_tasks(spark), plans, topics, limits, checkpoints, additions)
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
        master = choose_master(self.settings.master, slots, os.cpu_count() or 1, self.settings.spare_slots)
        log.info("starting Spark", master=master, slots=slots)
        return start_session(self.settings, master)

    def _supervise(
        self,
        starts: Starts,
        tasks: Callable[[], Mapping[str, int]],
        plans: Sequence[QueryPlan],
        topics: Topics,
        limits: DeadLetterLimits,
        checkpoints: Checkpoints,
        additions: Additions,
    ) -> None:
        kafka = self.settings
        with closing(SinkTail(kafka)) as tail:
            checkpointed = CheckpointedOffsets(
                topics.ends_of, topics.readable_ends, CheckpointedGroup(kafka).commit, starts.running
            )
            output = Output(tail.look, self.metrics)
            watch = SourceWatch(topics.states, topics.waiting, self.metrics)
            clock, pause, ready = DayClock(), LOOK_AT_START_S, False
            while not self.stopping.wait(pause):
                checkpoints.check()
                # Once all queries that run have started. Not once it is ready: that may need a corrected file.
                if pause == LOOK_S:
                    additions.look()
                # First: a query that has lost its topic is not started again.
                starts.stand_still(watch.look(starts.plans, starts.ended))
                starts.take_failed()
                starts.start_again(clock.step_back_s())
                look_at_all(starts.running, tasks, self.readiness, starts.start())
                if (uncounted := self._uncounted(limits)) is not None:
                    log.warning(uncounted)
                starts.hold_to_limits(limits.too_many)
                self.readiness.notes = [*watch.notes, *starts.notes(), *additions.refused.notes()]
                checkpointed.look()
                if pause == LOOK_S:
                    output.look(additions.plans)
                waiting = sum(watch.waiting_records.values())
                line = summary(output, starts.running, limits.counted, waiting, time.time())
                self.show(self.readiness.reason or line)
                # A query may be held back for long, and the others have output meanwhile.
                pause = LOOK_S if all(each.started for each in starts.running) else pause
                if not ready and self.readiness.reason is None:
                    ready = True
                    log.info("ready", queries=[each.name for each in plans])

    def _uncounted(self, limits: DeadLetterLimits) -> str | None:
        """Returns why the dead letters cannot be counted now, such as a short outage; None when they have been."""
        try:
            limits.check(self.metrics)
        except (KafkaException, CheckpointsUnusableError) as error:
            return f"dead letters cannot be counted now: {error}"
        return None


def renewed(plan: QueryPlan, contract: Contract, topics: Topics) -> QueryPlan:
    """Returns the plan with its pipeline by the contract, which its query is prepared with.

    Mounted messages may have more fields than when the run began, and rows are read and written by the places of these.
    Topics may take smaller records. May raise KafkaException, and PipelineFileError for what the contract lacks now.
    """
    pipeline = shapes.check(plan.pipeline.file, plan.pipeline.definition, contract)
    return replace(plan, pipeline=fitted(pipeline, topics))


def _fitted(pipelines: Sequence[Pipeline], topics: Topics, refused: RefusedFiles) -> Iterator[Pipeline]:
    """Yields the pipelines that fit their topics, knowing how large records these take. May raise KafkaException."""
    for each in pipelines:
        with refused.refusing(Path(each.file)):
            yield fitted(each, topics)


def _claimed(
    plans: Sequence[QueryPlan], topics: Topics, checkpoints: Checkpoints, refused: RefusedFiles
) -> Iterator[QueryPlan]:
    """Yields the plans with usable checkpoints, each with its epoch. May raise KafkaException."""
    with ThreadPoolExecutor() as threads:
        claims = [threads.submit(claim, checkpoints, each, topics.highest_epoch) for each in plans]
    for each, claimed in zip(plans, claims, strict=True):
        with refused.refusing(Path(each.pipeline.file)):
            yield claimed.result()
