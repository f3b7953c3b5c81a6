"""Keeps the newest row of each key."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from typing_extensions import override

from stream_processor.pipeline.compile import Compilation
from stream_processor.pipeline.pipeline import Line, Pipeline, RowKey
from stream_processor.steps.dead_letters import LETTER, explode_groups, explode_lines
from stream_processor.steps.encode import encode_record, encode_source, to_records
from stream_processor.steps.functions import Functions
from stream_processor.steps.keys import event_time, row_keys, text_problems
from stream_processor.steps.outcomes import observe_state, state_columns
from stream_processor.steps.state import entries, known_rows


@dataclass(frozen=True, kw_only=True)
class LatestPipeline(Pipeline):
    """Keeps the newest row of each key, which is the row's own: `group` and `primary_key` are the same."""

    shuffles_of_changes = 1

    @override
    @classmethod
    def compiled(cls, names: Compilation) -> Self:
        group = names.group(single="latest")
        key = names.primary_key() or group
        if set(key.texts) != set(group.texts):
            problem = f"{group} is not the row's key {key}: latest keeps one row per key; others go with members"
            raise names.wrong("group_by", problem)
        names.check_select(names.scope())
        return cls(**names.common, group=group, primary_key=group)

    @property
    @override
    def counts(self) -> bool:
        return self.events

    @override
    def state(self) -> Iterator[Line]:
        if self.events:
            yield "remember", f"per key: the newest event, by {self.time or 'the time of its record'}"
        else:
            yield self.remembered("the keys that the row stands under")

    @property
    @override
    def row_key(self) -> RowKey:
        return RowKey("group_by", self.group, self.group.texts, mismatch("group_by", str(self.group)))

    @override
    def key_problem(self, name: str, row: Column) -> Column:
        return F.coalesce(*[each for path in self.group.paths for each in text_problems(name, row, path)])

    def keys(self, row: Column) -> Column:
        """Returns the row's keys as an array of texts, one per group that it is in."""
        return row_keys(row, self.group)

    def with_keys(self, changes: DataFrame) -> DataFrame:
        """Adds `current` and `stated`: the keys of `after`, and those of `before`."""
        return changes.withColumns({"current": self.keys(F.col("after")), "stated": self.keys(F.col("before"))})

    @override
    def records(self, read: Sequence[DataFrame], partitions: int, epoch: int, functions: Functions) -> DataFrame:
        [changes] = read
        if self.events:
            return to_records(self._newest_lines(changes, epoch, functions), partitions, functions)
        known = known_rows(entries(self.with_keys(changes), self, functions), self, every_change=False)
        return to_records(_lines(retract(known), functions), partitions, functions)

    def _newest_lines(self, events: DataFrame, epoch: int, functions: Functions) -> DataFrame:
        """Returns, per key of the sink with a new event, a line of its newest one, as to_records takes it.

        The newest is the one with the latest time, and of the same time the one with the highest place. The sequence
        counts the key's events, so that it is the same in whichever order they were read: `epoch` is the life of the
        checkpoint.
        """
        whole = events.select(
            F.transform(self.keys(F.col("after")), lambda key: F.struct(key.alias("key"))).alias("lines"),
            F.struct(event_time(self).alias("time"), F.col("sequence")).alias("place"),
            F.struct("payload", encode_source(F.col("change.source"), functions).alias("source")).alias("row"),
            LETTER,
        )
        newest = (
            explode_groups(whole, F.col("lines"), ["place", "row"])
            .groupBy("key")
            .agg(
                F.max_by("row", "place").alias("row"),
                F.count(F.lit(1)).alias("events"),
                # A letter is a group of its own, which never gets another line.
                F.first(LETTER, ignorenulls=True).alias(LETTER),
            )
        )
        record = encode_record(
            F.lit(epoch).cast("long"), F.col("events"), F.col("row.source"), F.col("row.payload"), functions
        )
        return newest.select("key", F.lit(False).alias("deleted"), record.alias("record"), LETTER)


def mismatch(key: str, paths: str) -> str:
    """Returns the problem of a table's record with another key than the one at a key of the file."""
    return f"the record's key is not {key}, {paths}: two rows could be one; say source.key if no two have the same"


def retract(changes: DataFrame) -> DataFrame:
    """Adds `left` and `entered`: the keys to delete, and the keys to set to the row.

    A key that the row keeps is only set: no reader ever sees it gone in between. The keys that the change states are
    deleted too, even if the state does not remember them: they may stand on the topic when the state has forgotten
    them, or from before a crash.

    A change may come after a newer one, as when a row's changes are on several partitions and are read again in another
    order. Then those of its keys that the row does not have now are deleted, without a time, since the deletion has
    none.
    """
    applied, nothing, current = F.col("applied"), F.array().cast("array<string>"), F.col("current")
    stood = F.array_union(F.coalesce("previous", nothing), F.when(applied, F.col("stated")).otherwise(nothing))
    # Most changes leave a row where it is, and sets cost more than a look.
    stays = (F.col("previous") == current) & (F.col("stated") == current)
    return changes.withColumns(
        {
            "left": F.when(stays, nothing).otherwise(F.array_except(stood, current)),
            "entered": F.when(applied, current).otherwise(nothing),
            "source": F.when(applied, F.col("source")).otherwise(F.lit(b"")),
        }
    )


def _lines(retracted: DataFrame, functions: Functions) -> DataFrame:
    """Returns one line per key that is deleted or set: `key`, `deleted`, and `record`, the bytes of its StateRecord.

    A dead letter is one line with nothing in these.
    """
    epoch, sequence, source = F.col("epoch"), F.col("sequence"), F.col("source")
    tombstone = encode_record(epoch, sequence, source, F.lit(None).cast("binary"), functions)
    full = encode_record(epoch, sequence, source, F.col("payload"), functions)
    encoded = retracted.select(
        F.when(F.size("left") > 0, tombstone).alias("tombstone"),
        F.when(F.size("entered") > 0, full).alias("full"),
        F.size("left").alias("leaving"),
        F.concat("left", "entered").alias("keys"),
        LETTER,
        *state_columns(retracted),
    )
    lines = explode_lines(observe_state(encoded), F.col("keys"), at="at", entry="key")
    deleted = F.col("at") < F.col("leaving")
    record = F.when(deleted, F.col("tombstone")).otherwise(F.col("full"))
    return lines.select("key", deleted.alias("deleted"), record.alias("record"), LETTER)
