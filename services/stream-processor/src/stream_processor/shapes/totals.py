"""Passes rows on, as a route does, each with the sums that its group has then.

Records are written at least once, and those that come again after a crash are the same: Spark records the input of a
micro-batch before it begins, and within a batch the log decides on the order (RunningTotals.java). Real-time mode
has no such batches, so it is refused for these (ADR 0032).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, cast

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from typing_extensions import override

from statecast_domains.sections import RouteSection
from stream_processor.pipeline.compile import Compilation
from stream_processor.pipeline.fields import scope_of
from stream_processor.pipeline.pipeline import Line, SummingPipeline
from stream_processor.shapes.aggregate import aggregates_of
from stream_processor.shapes.route import PassingPipeline, operations_of
from stream_processor.spark_internals import stateful
from stream_processor.steps.aggregation import is_beyond, numbers, touched
from stream_processor.steps.contributions import check_numbers, contributed, contributions, parts_of
from stream_processor.steps.dead_letters import LETTER, is_letter
from stream_processor.steps.decode import INSERTS
from stream_processor.steps.functions import Functions, filled
from stream_processor.steps.outcomes import WITHHELD, observe_withheld
from stream_processor.steps.state import entries, known_rows

WHEN_NEW = "when_new"
"""A column: whether a record is passed on only if the row was not in its group before."""


@dataclass(frozen=True, kw_only=True)
class TotalsPipeline(SummingPipeline, PassingPipeline):
    """A route with records that carry the sums of their group so far: the `aggregates`."""

    numbers_key = "keep.route.totals"

    @override
    @classmethod
    def compiled(cls, names: Compilation) -> Self:
        group = names.group(single=cls.numbers_key)
        names.check_select(names.scope())
        totals = cast(RouteSection, names.definition.keep.route).totals or {}
        for name in totals.keys() & (names.definition.select or {}).keys():
            raise names.wrong(f"{cls.numbers_key}.{name}", f"{name} is filled by select")
        return cls(
            **names.common,
            group=group,
            primary_key=names.primary_key(),
            operations=operations_of(names),
            aggregates=tuple(aggregates_of(names, cls.numbers_key, totals, scope_of(names.row, {}), _refused)),
        )

    @override
    def state(self) -> Iterator[Line]:
        yield from super().state()
        yield "pass on", self.passed_on("are passed on with what their group has then, at least once")

    @override
    def checked(self, changes: DataFrame) -> DataFrame:
        return check_numbers(changes, self)

    @override
    def records(self, read: Sequence[DataFrame], partitions: int, epoch: int, functions: Functions) -> DataFrame:
        """Returns `key`, the group as text, and `value`, the result of `select` with the totals behind it.

        A record with a total beyond its field is withheld: there is none. Encoded messages that are laid end to end
        are one message.
        """
        [changes] = read
        lines = self._lines(self._known(changes, functions), functions)
        totals = stateful("groups.RunningTotals", lines, ["rows", *(part.name for part in parts_of(self))])
        judged = observe_withheld(totals.withColumn(WITHHELD, ~is_letter() & is_beyond(self)))
        message = functions.encode(filled(self.sink, numbers(self)), self.sink.full_name)
        value = F.concat("payload", message).alias("value")
        return judged.where(~F.col(WITHHELD)).select(F.col("key").cast("binary").alias("key"), value, LETTER)

    def _passed(self, changes: DataFrame) -> DataFrame:
        """Takes `payload` away where the change's operation is not among the route's, and adds WHEN_NEW."""
        operation = F.col("change.operation")
        payload = F.when(operation.isin(*self.operations), F.col("payload"))
        return changes.withColumns({"payload": payload, WHEN_NEW: operation.isin(*INSERTS)})

    def _known(self, changes: DataFrame, functions: Functions) -> DataFrame:
        """Returns the rows with their current and previous contributions; an event has no previous ones."""
        if not self.events:
            summed = self._passed(contributions(changes, self, functions))
            return known_rows(entries(summed, self, functions, beside=[WHEN_NEW]), self, every_change=True)
        new = {"previous": F.slice("current", 1, 0), "applied": F.lit(True)}
        columns = ("epoch", "sequence", "payload", WHEN_NEW, "current", LETTER)
        added = self._passed(contributed(changes, "after", "current", self, functions)).select(*columns)
        return added.withColumns({**new, "primary_key": F.lit("")})

    def _lines(self, known: DataFrame, functions: Functions) -> DataFrame:
        """Returns one line per group that an applied change touches: the added numbers, and the `payload` of a record.

        A row that a snapshot reads again is in its group already: that is no new row, and nobody is told of it.
        """
        kept = ["primary_key", "epoch", "sequence", "payload", WHEN_NEW]
        lines = touched(known, self, functions, kept)
        tells = F.col("stands") & (~F.col(WHEN_NEW) | ~F.col("stood"))
        return lines.withColumn("payload", F.when(tells, F.col("payload"))).drop("stood", "stands", WHEN_NEW)


def _refused(function: str, _: str) -> str | None:
    if function in ("min", "max"):
        return f"{function} cannot be taken back when a row changes; running totals are count, sum and avg"
    return "running totals are count, sum and avg" if function == "collect_set" else None
