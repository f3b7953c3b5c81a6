"""Starts the queries of a run; one that joins a table, when the table has been loaded for the first time."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import structlog
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from stream_processor.definition.pipeline import RowPipeline
from stream_processor.metrics import Metrics
from stream_processor.operation.monitoring import Ends, WatchedQuery
from stream_processor.operation.plan import QueryPlan
from stream_processor.operation.queries import start

log = structlog.get_logger()


class FirstLoads:
    """Which queries wait for which.

    A row is joined with what its table holds at that moment, and no later change of the table rewrites it. So a query
    without a checkpoint, which joins what another query of the process writes, starts once that one has read its source
    as far as it went when the process started, and a checkpoint holds it: then the table has it, too.
    """

    def __init__(self, plans: Sequence[QueryPlan], is_new: Callable[[str], bool], ends: Callable[[str], Ends]) -> None:
        """`is_new` tells of a query's name whether it has no checkpoint; `ends` are those of a topic."""
        writers = {each.sink_topic: each for each in plans if each.shuffle_partitions}
        self._waits: dict[str, dict[str, Ends]] = {}
        for each in plans:
            for table in [writers[topic] for topic in _tables(each) if topic in writers and is_new(each.name)]:
                # Two that join each other would wait for ever.
                if each.name not in self._all_before(table.name):
                    self._waits.setdefault(each.name, {})[table.name] = ends(table.source_topic)

    def missing(self, name: str, running: Sequence[WatchedQuery], held: Collection[str]) -> str | None:
        """What the query waits for, None when it may start. What neither runs nor is held back is not awaited."""
        known = {each.plan.name: each for each in running}
        for table, ends in self._waits.get(name, {}).items():
            if table in held or (table in known and not known[table].has_checkpointed(ends)):
                return f"{name} waits for the first checkpoint of {table}, which it joins"
        return None

    def _all_before(self, name: str) -> set[str]:
        """The query, and all that it waits for, directly or not."""
        return {name}.union(*(self._all_before(each) for each in self._waits.get(name, {})))


def _tables(plan: QueryPlan) -> list[str]:
    pipeline = plan.pipelines[0]
    joins = pipeline.joins if isinstance(pipeline, RowPipeline) and not plan.sets_aside else ()
    return list(dict.fromkeys(join.topic for join in joins))


@dataclass
class Starts:
    """The queries of a run: those that run, and those that are prepared and held back."""

    held: list[tuple[QueryPlan, DataStreamWriter]]
    loads: FirstLoads
    tasks: Callable[[StreamingQuery], int]
    metrics: Metrics
    running: list[WatchedQuery] = field(default_factory=list)
    _told: list[str] = field(default_factory=list, init=False)

    def start(self) -> list[str]:
        """Starts those that may, and returns why others may not. Raises QueryFailedError."""
        names = [plan.name for plan, _ in self.held]
        reasons = {name: self.loads.missing(name, self.running, names) for name in names}
        for plan, prepared in [each for each in self.held if reasons[each[0].name] is None]:
            self.running.append(WatchedQuery(plan, start(plan, prepared), self.tasks, self.metrics))
            log.info("started", query=plan.name, source=plan.source_topic, sink=plan.sink_topic)
        self.held = [each for each in self.held if reasons[each[0].name] is not None]
        missing = [reason for reason in reasons.values() if reason is not None]
        for reason in missing:
            if reason not in self._told:
                log.info("held back", reason=reason)
        self._told = missing
        return missing
