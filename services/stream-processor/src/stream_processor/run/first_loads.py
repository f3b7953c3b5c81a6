"""Decides which queries wait for the first load of a table that they join."""

from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import KafkaException

from stream_processor.run.plan import QueryPlan
from stream_processor.run.watch import Ends, WatchedQuery


class FirstLoads:
    """Decides which queries wait for which.

    A row is joined with the table's row of that moment, and no later change of the table rewrites it. So a query
    without a checkpoint that joins the output of another query of the process waits. It starts once a checkpoint of the
    other query holds its source up to the end that the source had when the other query's tasks first ran: then the
    table has it, too. An earlier end would miss a source that is filled while Spark starts. While the other query
    stands still or is refused, the table may lack rows, and the query waits.
    """

    def __init__(
        self,
        plans: Sequence[QueryPlan],
        is_new: Callable[[str], bool],
        ends: Callable[[str], Ends],
        refused: Callable[[], Mapping[str, str]],
    ) -> None:
        """`plans` are all of the process, also of pipelines that stand still.

        `is_new` tells of a query's name whether it has no checkpoint. `ends` gives those that readers of a topic reach,
        and may raise KafkaException: the query waits on, and they are asked for again. `refused` gives the pipelines
        that are refused now, by the keyed topic that each would write.
        """
        self._writers: dict[str, str] = {}
        """The name of the query that writes each keyed topic."""
        self._joined: dict[str, list[str]] = {}
        """The topics that each query joins which has no checkpoint and was not started yet."""
        self._waits: dict[str, dict[str, Mapping[str, Ends] | None]] = {}
        """By the query that waits and the table's query: the ends of the table's sources, None while not known."""
        self._ends = ends
        self._refused = refused
        self.add(plans, is_new)

    def add(self, plans: Sequence[QueryPlan], is_new: Callable[[str], bool]) -> None:
        """Takes more plans of the process, in place of those with the same names. `is_new` is as before."""
        for each in plans:
            self.remove(each.name)
            if each.shuffles:
                self._writers[each.sink_topic] = each.name
            if each.joined_topics and is_new(each.name):
                self._joined[each.name] = each.joined_topics
        # Of those before, too: the file of a table may come after those of the pipelines that join it.
        for name, topics in self._joined.items():
            for table in [self._writers[topic] for topic in topics if topic in self._writers]:
                # Two that join each other would wait for ever.
                if name not in self._all_before(table):
                    self._waits.setdefault(name, {}).setdefault(table, None)

    def awaited(self, name: str, running: Sequence[WatchedQuery]) -> list[str]:
        """Returns the names of the queries with a first checkpoint that the query waits for, and of refused ones."""
        known = {each.plan.name: each for each in running}
        waits, refused = self._waits.get(name, {}), self._refused()
        unknown = [topic for topic in self._joined.get(name, ()) if topic in refused and topic not in self._writers]
        loading = [table for table in waits if table not in known or not self._is_loaded(known[table], waits)]
        return [*loading, *(refused[topic] for topic in unknown)]

    def _is_loaded(self, table: WatchedQuery, waits: dict[str, Mapping[str, Ends] | None]) -> bool:
        ends = waits[table.plan.name]
        if ends is None and table.started:
            try:
                ends = {topic: self._ends(topic) for topic in table.plan.source_topics}
            except KafkaException:
                return False
            waits[table.plan.name] = ends
        return ends is not None and table.has_checkpointed(ends)

    def end(self, name: str) -> None:
        """Notes that the query has started: it never waits again."""
        self._joined.pop(name, None)
        self._waits.pop(name, None)

    def remove(self, name: str) -> None:
        """Notes that the query is none of the process any more: nobody waits for it."""
        self.end(name)
        self._writers = {topic: writer for topic, writer in self._writers.items() if writer != name}
        for tables in self._waits.values():
            tables.pop(name, None)

    def _all_before(self, name: str) -> set[str]:
        """Returns the query, and all that it waits for, directly or not."""
        return {name}.union(*(self._all_before(each) for each in self._waits.get(name, {})))
