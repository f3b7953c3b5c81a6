"""Joins two tables by the keys of their records: a change of either side writes the joined row anew (ADR 0040).

A Java operator (TableJoin.java) holds the encoded rows of both sides, and emits a key once per micro-batch. Its output
is the same when a batch runs again after a crash: Spark writes down a batch's input, and its time, before it begins.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self, cast

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from typing_extensions import override

from statecast_domains.source_sections import JoinType, TableJoinSection
from statecast_domains.values import human
from stream_processor.pipeline.compile import Compilation
from stream_processor.pipeline.fields import Type, scope_of
from stream_processor.pipeline.pipeline import Line, Pipeline, RowKey
from stream_processor.shapes.latest import LatestPipeline
from stream_processor.spark_internals import stateful
from stream_processor.steps.dead_letters import LETTER, is_letter, letter_key
from stream_processor.steps.encode import encode_record, encode_source, to_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.outcomes import (
    WITHHELD,
    clock,
    observe_read,
    observe_state,
    observe_withheld,
    outcome_columns,
)
from stream_processor.steps.projection import KEPT, in_scope, message_of

_JOINED_KEYS = {"source.message": "table_join.message", "group_by": "table_join.key"}
"""The file's names of the keys by which a joined table is checked alone."""
_ROWS = ("source_row", "joined_row")
_JOINED, _MESSAGE = "__joined", "__message"


@dataclass(frozen=True, kw_only=True)
class JoinSide(LatestPipeline):
    """A table of a join, as a pipeline that reads it alone: its records have the keys at `primary_key`."""

    @property
    @override
    def row_key(self) -> RowKey:
        name = "group_by" if self.section == "source" else "table_join.key"
        problem = f"the record's key is not {name}, {self.group}: the rows of two tables are joined by it"
        return RowKey(name, self.group, self.group.texts, problem)


@dataclass(frozen=True, kw_only=True)
class TableJoinPipeline(LatestPipeline):
    """Keeps a row per key of two tables, made of the rows that they have under it; the source's side is the first."""

    sides: tuple[JoinSide, JoinSide]
    joined_as: str
    join_type: JoinType

    @override
    @classmethod
    def compiled(cls, names: Compilation) -> Self:
        section = cast(TableJoinSection, names.definition.table_join)
        key = names.group(single="latest")
        own, others = names.definition.sides
        other = JoinSide.compiled(Compilation(names.file, others, names.contract, _JOINED_KEYS))
        if section.as_ in (*names.row.fields_by_name, "row"):
            raise names.wrong("table_join.as", f"{section.as_} already names something else")
        names.check_select(scope_of(names.row, {section.as_: Type("message", declared=other.row)}))
        side = JoinSide(**{**names.common, "definition": own}, group=key, primary_key=key)
        sides = (side, replace(other, section="table_join"))
        common = names.common | {"joined_as": section.as_, "join_type": section.type}
        return cls(**common, group=key, primary_key=key, sides=sides)

    @property
    @override
    def readers(self) -> tuple[Pipeline, ...]:
        return self.sides

    @property
    @override
    def counts(self) -> bool:
        return True

    @override
    def own_lines(self) -> Iterator[Line]:
        _, other = self.sides
        yield "join", f"{other.source_topic} as {self.joined_as}, by the records' keys: {self.join_type}"

    @override
    def state(self) -> Iterator[Line]:
        forget = human(self.definition.forget_deleted)
        yield "remember", f"per key of both tables' records: the rows of both; for {forget} after both are gone"

    @override
    def limited(self, payload_bytes: int, letter_bytes: Mapping[str, int]) -> Self:
        source, joined = (each.limited(payload_bytes, letter_bytes) for each in self.sides)
        return replace(super().limited(payload_bytes, letter_bytes), sides=(source, joined))

    @override
    def records(self, read: Sequence[DataFrame], partitions: int, epoch: int, functions: Functions) -> DataFrame:
        """Returns the joined rows that change. One is withheld if `select` makes a message that the topic refuses."""
        source, joined = (
            _lines(each, side, reader, functions)
            for side, (each, reader) in enumerate(zip(read, self.sides, strict=True))
        )
        kind = self.join_type
        forget_s = round(self.definition.forget_deleted.total_seconds())
        known = stateful("state.TableJoin", source.union(joined), forget_s, kind != "inner", kind == "outer")
        joined_rows = observe_state(known).where(F.col("deleted").isNotNull() | is_letter())
        rows = [_row(F.col(name), side.row.full_name, functions) for name, side in zip(_ROWS, self.sides, strict=True)]
        scoped = in_scope(
            joined_rows.withColumns(dict(zip(("after", _JOINED), rows, strict=True))),
            "after",
            {self.joined_as: _JOINED},
        )
        message = message_of(scoped, self, functions)
        made = scoped.select(f"{KEPT}.*", message.alias(_MESSAGE))
        room = self.max_payload_bytes
        is_large = F.lit(False) if room is None else F.coalesce(F.octet_length(_MESSAGE) > room, F.lit(False))
        judged = observe_withheld(made.withColumn(WITHHELD, ~F.col("deleted") & is_large))
        made = judged.withColumn("deleted", F.col("deleted") | F.col(WITHHELD))
        payload = F.when(~F.col("deleted"), F.col(_MESSAGE))
        record = encode_record(F.lit(epoch).cast("long"), F.col("sequence"), F.col("source"), payload, functions)
        lines = made.select("key", "deleted", record.alias("record"), LETTER)
        return to_records(lines, partitions, functions)


def _lines(changes: DataFrame, side: int, reader: JoinSide, functions: Functions) -> DataFrame:
    lines = changes.select(
        F.coalesce(letter_key(), F.col("key").cast("string")).alias("key"),
        F.lit(side).alias("side"),
        "epoch",
        "sequence",
        F.when(F.col("after").isNotNull(), F.col("payload")).alias("payload"),
        encode_source(F.col("change.source"), functions).alias("source"),
        F.unix_micros("change.source.commit_time").alias("committed"),
        clock(reader).alias("time"),
        LETTER,
        *outcome_columns(changes),
    )
    return observe_read(lines, side)


def _row(payload: Column, message: str, functions: Functions) -> Column:
    """Returns the row of an encoded one that was sound when it came; the query ends if its message has changed."""
    decoded = functions.decode_row(payload, message)
    problem = decoded.getField("problem")
    return F.when(problem.isNull(), decoded.getField("row")).otherwise(F.raise_error(problem))
