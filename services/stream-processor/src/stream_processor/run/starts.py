"""Starts the queries of a run, and those again that have failed."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import structlog
from confluent_kafka import KafkaException
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast_domains.errors import PipelineFileError
from statecast_service.errors import ServiceError, SettingsError
from stream_processor.errors import (
    CheckpointsUnusableError,
    NoRoomError,
    PipelineChangedError,
    SparkLostError,
    StandstillError,
)
from stream_processor.metrics import Metrics
from stream_processor.run.first_loads import FirstLoads
from stream_processor.run.plan import QueryPlan, slots_needed
from stream_processor.run.queries import Prepared, start
from stream_processor.run.restarts import OTHERS_PAUSE_S, Restarts
from stream_processor.run.session import missing_slots, stop_queries
from stream_processor.run.snapshots import Snapshots
from stream_processor.run.watch import WatchedQuery

log = structlog.get_logger()

MAX_START_AGAIN_S = 5.0
"""After so long the run looks at its other queries before it starts more again."""
BUSY = "its former run still has task slots"


class Slots(NamedTuple):
    """Task slots of all executors: all of them, and those with a task."""

    offered: int
    taken: int


@dataclass(eq=False)
class Waiting:
    """A query that is to start, once the clock shows `due` seconds.

    `writer` starts it for the first time. Without it the query has failed or was stopped, and is prepared again.
    """

    plan: QueryPlan
    writer: DataStreamWriter | None = None
    due: float = 0.0
    reason: str = ""
    """Why it does not run, for people; empty before the first start."""


class Stopped(NamedTuple):
    """A query that does not start by itself, and why."""

    plan: QueryPlan
    reason: str


def check_any_left(plans: Sequence[QueryPlan], reasons: Mapping[str, str]) -> None:
    """Raises StandstillError when each pipeline stands still, for `reasons` by name."""
    if reasons and all(each.name in reasons for each in plans):
        raise StandstillError("; ".join(dict.fromkeys(reasons.values())))


@dataclass
class Starts:
    """The queries of a run. Each runs, waits for its start or is stopped, independently of the others.

    A query that fails waits to be started again. `again` claims the checkpoint of a plan and prepares its query;
    `missing` says by name why plans cannot start for the sake of their topics; `clock` gives seconds.
    """

    waiting: list[Waiting]
    loads: FirstLoads
    metrics: Metrics
    restarts: Restarts
    again: Callable[[QueryPlan], Prepared]
    missing: Callable[[Sequence[QueryPlan]], Mapping[str, str]]
    slots: Callable[[], Slots]
    running: list[WatchedQuery] = field(default_factory=list)
    snapshots: Snapshots = field(default_factory=Snapshots)
    clock: Callable[[], float] = time.monotonic
    stopped: dict[str, Stopped] = field(default_factory=dict, init=False)
    _beyond_limit: set[str] = field(default_factory=set, init=False)
    _logged: dict[str, str] = field(default_factory=dict, init=False)

    def add(self, waiting: Sequence[Waiting], is_new: Callable[[str], bool]) -> None:
        """Takes more queries, to be started by `start`; `is_new` is as that of FirstLoads."""
        self.loads.add([each.plan for each in waiting], is_new)
        self.waiting += waiting

    def forget(self, names: Collection[str]) -> None:
        """Stops the queries, if they run, and keeps nothing of them: others take their place."""
        self._take_out(names)
        self._beyond_limit.difference_update(names)
        for name in names:
            self.stopped.pop(name, None)
            self.restarts.forget(name)

    def remove(self, names: Collection[str]) -> None:
        """Stops the queries, if they run, waits for none of them, and shows nothing of them: they are gone."""
        self.forget(names)
        for name in names:
            self.loads.remove(name)
            self.metrics.remove(name)

    def take_failed(self) -> None:
        """Takes out the queries that have ended by themselves: they wait, or are stopped after too many failures.

        Raises SparkLostError when all of Spark has ended, StandstillError when no pipeline is left.
        """
        for each in list(self.running):
            if (failure := each.failure()) is not None:
                self.running.remove(each)
                self._fail(each.plan, failure, self.clock() - each.begun_s)

    def start_again(self, step_back_s: float) -> None:
        """Starts the micro-batch queries again, which wait for a time of day, when the clock went back."""
        waiting = [each.plan.name for each in self.running if step_back_s and not each.plan.realtime]
        if waiting:
            reason = f"the clock went back by {step_back_s:.0f} s, and it would wait for as long"
            log.warning("queries start again", queries=waiting, reason=reason)
            self.waiting += [Waiting(plan, reason=reason) for plan in self._take_out(waiting)]

    def start(self) -> list[str]:
        """Starts those that may, and returns why others will start later; not of those that have failed.

        Raises StandstillError when no pipeline is left.
        """
        held = self._held()
        due = [each for each in self.waiting if each.plan.name not in held and each.due <= self.clock()]
        hindered = self._hindered([each.plan for each in due])
        until = self.clock() + MAX_START_AGAIN_S
        for each in due:
            if each.writer is None and self.clock() > until:
                continue
            if (reason := hindered.get(each.plan.name)) is not None:
                self._wait(each, reason)
            else:
                self.waiting.remove(each)
                self._start(each)
        held = self._held()
        coming = self._coming()
        for name, reason in held.items():
            self._log_once("held back", name, reason)
        late = [each.reason for each in self.waiting if each.writer is not None and each.reason]
        return [*(reason for name, reason in held.items() if name in coming), *late]

    def notes(self) -> list[str]:
        """Returns a line for people about each query that stands still or has failed."""
        held = self._held()
        coming = self._coming()
        return [
            *(f"{name} stands still: {each.reason}" for name, each in self.stopped.items()),
            *(f"{each.plan.name} does not run: {each.reason}" for each in self.waiting if each.reason),
            *(reason for name, reason in held.items() if name not in coming),
        ]

    @property
    def plans(self) -> list[QueryPlan]:
        """Returns the plans of the queries that are not stopped."""
        return [*(each.plan for each in self.running), *(each.plan for each in self.waiting)]

    @property
    def ended(self) -> set[str]:
        """Returns the names of the queries that have ended by themselves.

        Raises SparkLostError when all of Spark has.
        """
        failed = {each.plan.name for each in self.waiting if each.reason}
        return failed | {each.plan.name for each in self.running if each.failure() is not None}

    def stand_still(self, reasons: Mapping[str, str]) -> None:
        """Takes out the queries that must stand still, for `reasons` by name, and stops those that run.

        Raises StandstillError when no pipeline is left.
        """
        for plan in self._take_out(reasons):
            self._stop(plan, reasons[plan.name])
        self._check_any_left()

    def hold_to_limits(self, too_many: Mapping[str, str]) -> None:
        """Stops the queries that have too many dead letters, and starts those again with letters that were accepted.

        Raises StandstillError when no pipeline is left.
        """
        for name in self._beyond_limit - too_many.keys():
            log.info("a pipeline is within its limit of dead letters again", query=name)
            self.waiting.append(Waiting(self.stopped.pop(name).plan))
        self._beyond_limit &= too_many.keys()
        self._beyond_limit |= {each.name for each in self.plans} & too_many.keys()
        self.stand_still(too_many)

    def _start(self, each: Waiting) -> None:
        plan, writer = each.plan, each.writer
        try:
            if writer is None:
                plan, writer = self.again(plan)
            query = start(plan, writer)
        except SparkLostError:
            raise
        except (PipelineFileError, PipelineChangedError) as error:
            self._stop(plan, str(error))
            self._check_any_left()
        except (KafkaException, CheckpointsUnusableError) as error:  # as of a full disk: over once others have acted
            self.waiting.append(each)
            self._wait(each, str(error))
        except ServiceError as error:
            self._fail(plan, error)
        else:
            self.running.append(WatchedQuery(plan, query, self.metrics, self.snapshots, begun_s=self.clock()))
            self.loads.end(plan.name)
            self._logged.pop(plan.name, None)
            log.info("started", query=plan.name, source=", ".join(plan.source_topics), sink=plan.sink_topic)

    def _fail(self, plan: QueryPlan, failure: ServiceError, ran_s: float = 0.0) -> None:
        self.metrics.query_up.labels(plan.name).set(0)
        self.metrics.query_failures.labels(plan.name).inc()
        # Others end these: a full disk, and mounted messages that cannot be read.
        of_others = isinstance(failure, NoRoomError | SettingsError)
        pause_s = OTHERS_PAUSE_S if of_others else self.restarts.pause_s(plan.name, ran_s)
        if pause_s is None:
            times = f"it failed {self.restarts.most} times in a row"
            self._stop(plan, f"{times}, at last: {failure}: remove the cause, then start the process anew")
            self._check_any_left()
        else:
            log.error("a query failed; restarting it", query=plan.name, reason=str(failure), after_s=pause_s)
            self.waiting.append(Waiting(plan, due=self.clock() + pause_s, reason=str(failure)))

    def _stop(self, plan: QueryPlan, reason: str) -> None:
        log.error("a pipeline stands still; the others go on", query=plan.name, reason=reason)
        self.metrics.query_up.labels(plan.name).set(0)
        self.stopped[plan.name] = Stopped(plan, reason)

    def _check_any_left(self) -> None:
        check_any_left(self.plans, {name: each.reason for name, each in self.stopped.items()})

    def _take_out(self, names: Collection[str]) -> list[QueryPlan]:
        """Takes out the queries of these names, and stops those that run. May block for Spark's stopTimeout."""
        out = [each for each in self.plans if each.name in names]
        queries = [each.query for each in self.running if each.plan.name in names]
        # Out before they are stopped: one that has ended would be started again.
        self.running[:] = [each for each in self.running if each.plan.name not in names]
        self.waiting[:] = [each for each in self.waiting if each.plan.name not in names]
        stop_queries(queries)
        return out

    def _hindered(self, plans: Sequence[QueryPlan]) -> dict[str, str]:
        """Returns by name why plans that are due cannot start yet."""
        if not plans:
            return {}
        reasons, slots = dict(self.missing(plans)), self.slots()
        beside, free = [each.plan for each in self.running], slots.offered - slots.taken
        for plan in plans:
            if plan.name in reasons:
                continue
            if (missing := missing_slots(slots.offered, slots_needed([*beside, plan]))) is not None:
                reasons[plan.name] = missing
            elif plan.realtime and free < plan.tasks:
                reasons[plan.name] = BUSY
            else:
                beside.append(plan)
                free -= plan.tasks
        return reasons

    def _held(self) -> dict[str, str]:
        """Returns by name which queries wait for the first load of a table, each with the reason for people."""
        known, held = {each.name for each in self.plans}, {}
        for name in [each.plan.name for each in self.waiting]:
            for table in self.loads.awaited(name, self.running):
                is_coming = f"{name} waits for the first checkpoint of {table}, which it joins"
                held[name] = is_coming if table in known else f"{name} waits for {table}, which stands still"
        return held

    def _coming(self) -> set[str]:
        """Returns the names of the queries that run, or will when the tables that they wait for have been loaded."""
        coming = {each.plan.name for each in self.running}
        new = {each.plan.name for each in self.waiting if each.writer is not None}
        while more := {name for name in new - coming if {*self.loads.awaited(name, self.running)} <= coming}:
            coming |= more
        return coming

    def _wait(self, each: Waiting, reason: str) -> None:
        each.reason = reason
        self._log_once("a query waits for its start", each.plan.name, reason)

    def _log_once(self, event: str, name: str, reason: str) -> None:
        if self._logged.get(name) != reason:
            log.warning(event, query=name, reason=reason)
            self._logged[name] = reason
