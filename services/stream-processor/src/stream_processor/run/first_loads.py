"""Decides which queries wait for the first load of a table that they join."""

from collections.abc import Callable, Mapping, Sequence

from stream_processor.run.plan import QueryPlan
from stream_processor.run.watch import Ends, WatchedQuery


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
        writers |= {each.sink_topic: each for each in plans if each.shuffles}
        for each in plans:
            for table in [writers[topic] for topic in each.joined_topics if topic in writers and is_new(each.name)]:
                # Two that join each other would wait for ever.
                if each.name not in self._all_before(table.name):
                    read = {topic: ends(topic) for topic in table.source_topics}
                    self._waits.setdefault(each.name, {})[table.name] = read

    def awaited(self, name: str, running: Sequence[WatchedQuery]) -> list[str]:
        """Returns the names of the queries with a first checkpoint that the query waits for."""
        known = {each.plan.name: each for each in running}
        return [
            table
            for table, ends in self._waits.get(name, {}).items()
            if table not in known or not known[table].has_checkpointed(ends)
        ]

    def end(self, name: str) -> None:
        """Notes that the query has started: it never waits again."""
        self._waits.pop(name, None)

    def remove(self, name: str) -> None:
        """Notes that the query is none of the process any more: nobody waits for it."""
        self.end(name)
        self._writers = {topic: each for topic, each in self._writers.items() if each.name != name}
        for tables in self._waits.values():
            tables.pop(name, None)

    def _all_before(self, name: str) -> set[str]:
        """Returns the query, and all that it waits for, directly or not."""
        return {name}.union(*(self._all_before(each) for each in self._waits.get(name, {})))
