"""Keeps nothing: passes on the rows of changes to a plain topic, one record each, or one per element of a list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from typing_extensions import override

from statecast_domains.sections import RouteSection
from stream_processor.errors import ContractError
from stream_processor.pipeline.compile import Compilation
from stream_processor.pipeline.fields import FieldPath, KeyPaths, Kind
from stream_processor.pipeline.pipeline import Line, Pipeline
from stream_processor.pipeline.sql_expression import type_of
from stream_processor.steps.dead_letters import LETTER, explode_lines, mark_letters
from stream_processor.steps.flow import selected
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import elements, group_problems, key_text, missing, single
from stream_processor.steps.projection import ELEMENT, PARTITION, place

PARTITION_KINDS: tuple[Kind, ...] = ("string", "integer", "enum")


@dataclass(frozen=True, kw_only=True)
class PassingPipeline(Pipeline):
    """A pipeline to a plain topic, of changes of these `operations` (names of statecast.change.v1.Operation)."""

    keeps_rows = False

    operations: tuple[str, ...]

    @property
    @override
    def counts(self) -> bool:
        return False

    def passed_on(self, how: str) -> str:
        """Tells people how the events are passed on, or the rows of which changes."""
        if self.events:
            return f"events {how}"
        operations = ", ".join(name.removeprefix("OPERATION_").lower() for name in self.operations)
        return f"rows of these changes {how}: {operations}"

    @override
    def key_problem(self, name: str, row: Column) -> Column:
        lacking = [missing(name, row, path) for path in self.group.paths]
        return F.when(row.isNotNull(), F.coalesce(*group_problems(name, row, self.group), *lacking))


@dataclass(frozen=True, kw_only=True)
class RoutePipeline(PassingPipeline):
    """Passes on rows of changes. Kafka's own partitioner places records by their key, unless the file says how.

    Records are written at least once: after a crash, those since the last checkpoint come again, and nothing in them
    shows it. A reader to which that matters compares keys and values, or reads a keyed topic.
    """

    shuffles_of_changes = 0

    @override
    @classmethod
    def compiled(cls, names: Compilation) -> Self:
        group = names.group()
        explode = _explode(names, group)
        scope, sql = names.scope(explode), names.definition.sink.partition_by
        names.check_select(scope)
        with names.at("sink.partition_by"):
            result = None if sql is None else type_of(sql, scope)
            if result is not None and (result.repeated or result.kind not in PARTITION_KINDS):
                raise ContractError(f"is of type {result}; it must be an integer or a text")
        return cls(**names.common, group=group, operations=operations_of(names), explode=explode)

    @override
    def own_lines(self) -> Iterator[Line]:
        if self.explode is not None:
            yield "explode", f"{self.explode}: a record per element"

    @override
    def state(self) -> Iterator[Line]:
        yield "keep", f"nothing; {self.passed_on('are passed on, at least once')}"

    @override
    def meaning(self) -> dict[str, object]:
        return {}

    @override
    def passes(self, is_grouped: Column) -> Column:
        return F.col("after").isNotNull() & F.col("change.operation").isin(*self.operations)

    @override
    def records(self, read: Sequence[DataFrame], partitions: int, epoch: int, functions: Functions) -> DataFrame:
        """Returns a record per change that passes and has a row that matches: the group as text, and the message."""
        [passed] = read
        if self.explode is not None:
            exploded = explode_lines(passed, elements(F.col("after"), self.explode), at="__at", entry=ELEMENT)
            passed = mark_letters(selected(exploded, self, functions), self)
        placed = place(passed.withColumn("__key", self._key()), self, partitions, functions)
        partition = [F.col(PARTITION).alias("partition")] if self.definition.sink.partition_by else []
        return placed.select(
            F.col("__key").cast("binary").alias("key"), F.col("payload").alias("value"), *partition, LETTER
        )

    def _key(self) -> Column:
        if self.explode is None or not self.group.repeated:
            return key_text(F.col("after"), self.group)
        [group] = self.group.paths
        return single(F.col(ELEMENT), FieldPath(group.fields[len(self.explode.fields) :]))


def operations_of(names: Compilation) -> tuple[str, ...]:
    """Returns the operations of the changes that are passed on."""
    route = cast(RouteSection, names.definition.keep.route)
    return tuple(f"OPERATION_{name.upper()}" for name in route.operations)


def _explode(names: Compilation, group: KeyPaths) -> FieldPath | None:
    text = names.definition.explode
    if text is None:
        if group.repeated:
            raise names.wrong("group_by", f"{group} gives many values of one row; explode them")
        return None
    with names.at("explode"):
        path = names.contract.path(names.row, text, names.definition.source.topic)
    if not path.fields[-1].is_repeated:
        raise names.wrong("explode", f"{path} is not repeated, there is nothing to explode")
    if group.repeated and (group.element is None or str(group.element) != str(path)):
        raise names.wrong("group_by", f"{group} gives many values of one element; it must give one")
    return path
