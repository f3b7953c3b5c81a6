"""Starts the queries of a run; one that joins a table, when the table has been loaded for the first time."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import structlog
from pyspark.sql.streaming.query import StreamingQuery

from stream_processor.errors import StandstillError
from stream_processor.metrics import Metrics
from stream_processor.operation.monitoring import Ends, WatchedQuery
from stream_processor.operation.plan import QueryPlan
from stream_processor.operation.queries import Prepared, start
from stream_processor.operation.session import stop_queries
from stream_processor.operation.snapshots import Snapshots

log = structlog.get_logger()


class FirstLoads:
    """Decides which queries wait for which.

    A row is joined with the table's row of that moment, and no later change of the table rewrites it. So a query
    without a checkpoint that joins the output of another query of the process waits. It starts once the other query has
    read its source up to the end at the start of the process, and a checkpoint holds it: then the table has it, too.
    While the other query stands still, the table may lack rows, and the query waits.
    """

    def __init__(self, plans: Sequence[QueryPlan], is_new: Callable[[str], bool], ends: Callable[[str], Ends]) -> None:
        """`plans` are all of the process, also of pipelines that stand still.

        `is_new` tells of a query's name whether it has no checkpoint; `ends` are those that readers of a topic reach.
        """
        self._writers: dict[str, QueryPlan] = {}
        self._waits: dict[str, dict[str, Mapping[str, Ends]]] = {}
        self.add(plans, is_new, ends)

    def add(self, plans: Sequence[QueryPlan], is_new: Callable[[str], bool], ends: Callable[[str], Ends]) -> None:
        """Takes more plans of the process. `is_new` and `ends` are as before."""
        writers = self._writers
        writers |= {each.sink_topic: each for each in plans if each.shuffle_partitions}
        for each in plans:
            for table in [writers[topic] for topic in each.joined_topics if topic in writers and is_new(each.name)]:
                # Two that join each other would wait for ever.
                if each.name not in self._all_before(table.name):
                    read = {topic: ends(topic) for topic in table.source_topics}
                    self._waits.setdefault(each.name, {})[table.name] = read

    def missing(self, name: str, running: Sequence[WatchedQuery], held: Collection[str]) -> str | None:
        """Returns the reason why the query waits; None when it may start."""
        known = {each.plan.name: each for each in running}
        for table, ends in self._waits.get(name, {}).items():
            if table not in known and table not in held:
                return f"{name} waits for {table}, which stands still"
            if table in held or not known[table].has_checkpointed(ends):
                return f"{name} waits for the first checkpoint of {table}, which it joins"
        return None

    def _all_before(self, name: str) -> set[str]:
        """The query, and all that it waits for, directly or not."""
        return {name}.union(*(self._all_before(each) for each in self._waits.get(name, {})))


def without(plans: Sequence[QueryPlan], reasons: Mapping[str, str], metrics: Metrics) -> list[QueryPlan]:
    """Returns the plans without those that must stand still, for `reasons` by name; logs them.

    Raises StandstillError when no pipeline is left.
    """
    for name, reason in reasons.items():
        log.error("a pipeline stands still", query=name, reason=reason)
        metrics.query_up.labels(name).set(0)
    left = [each for each in plans if each.name not in reasons]
    if reasons and all(each.sets_aside for each in left):
        raise StandstillError("; ".join(dict.fromkeys(reasons.values())))
    return left


@dataclass
class Starts:
    """The queries of a run: those that run, and those that are prepared and held back.

    Those that were added to a run which goes on decide nothing for it before they have started.
    """

    held: list[Prepared]
    loads: FirstLoads
    tasks: Callable[[StreamingQuery], int]
    metrics: Metrics
    running: list[WatchedQuery] = field(default_factory=list)
    snapshots: Snapshots = field(default_factory=Snapshots)
    _told: list[str] = field(default_factory=list, init=False)
    _added: set[str] = field(default_factory=set, init=False)

    def add(self, prepared: Sequence[Prepared], is_new: Callable[[str], bool], ends: Callable[[str], Ends]) -> None:
        """Takes more queries, to be started by `start`; `is_new` and `ends` are as those of FirstLoads."""
        plans = [plan for plan, _ in prepared]
        self._added.update(each.name for each in plans)
        self.loads.add(plans, is_new, ends)
        self.held += prepared

    def drop_failed(self) -> None:
        """Takes out added queries that have ended before they started, which nobody needs yet."""
        for each in [each for each in self.running if each.added and not each.started]:
            if (failure := each.failure()) is not None:
                log.error("an added pipeline has ended; the others go on", query=each.plan.name, reason=failure)
                self.running.remove(each)

    def start(self) -> list[str]:
        """Starts those that may, and returns why others may not, added ones left out. Raises QueryFailedError."""
        names = [plan.name for plan, _ in self.held]
        reasons = {name: self.loads.missing(name, self.running, names) for name in names}
        for plan, prepared in [each for each in self.held if reasons[each[0].name] is None]:
            is_added = plan.name in self._added
            watched = WatchedQuery(
                plan, start(plan, prepared), self.tasks, self.metrics, self.snapshots, added=is_added
            )
            self.running.append(watched)
            log.info("started", query=plan.name, source=", ".join(plan.source_topics), sink=plan.sink_topic)
        self.held = [each for each in self.held if reasons[each[0].name] is not None]
        missing = [reason for reason in reasons.values() if reason is not None]
        for reason in missing:
            if reason not in self._told:
                log.info("held back", reason=reason)
        self._told = missing
        return [reason for name, reason in reasons.items() if reason is not None and name not in self._added]

    @property
    def plans(self) -> list[QueryPlan]:
        return [*(each.plan for each in self.running), *(plan for plan, _ in self.held)]

    @property
    def ended(self) -> set[str]:
        """Returns the names of the queries that have ended by themselves.

        Raises QueryFailedError when all of Spark has.
        """
        return {each.plan.name for each in self.running if each.failure() is not None}

    def stand_still(self, reasons: Mapping[str, str]) -> None:
        """Takes out the queries that must stand still, for `reasons` by name, and stops those that run.

        Raises StandstillError when no pipeline is left.
        """
        out = {each.name: reasons[each.name] for each in self.plans if each.name in reasons}
        if not out:
            return
        without(self.plans, out, self.metrics)
        stopped = [each.query for each in self.running if each.plan.name in out]
        self.held = [each for each in self.held if each[0].name not in out]
        # Out before they are stopped: one that has ended would end the process.
        self.running[:] = [each for each in self.running if each.plan.name not in out]
        stop_queries(stopped)
