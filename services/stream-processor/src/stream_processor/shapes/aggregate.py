"""Keeps one message per group: the sums over the rows of the group, or of a window of it."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, cast

from google.protobuf.descriptor import FieldDescriptor
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from typing_extensions import override

from statecast_service.settings import suggest
from stream_processor.errors import ContractError
from stream_processor.pipeline.compile import Compilation, element_of
from stream_processor.pipeline.decimals import decimal_of
from stream_processor.pipeline.fields import FieldPath, KeyPaths, Kind, Scope, field_in, kind, scope_of
from stream_processor.pipeline.pipeline import (
    AGGREGATE_FUNCTIONS,
    TRUNCATED,
    WINDOW_FIELDS,
    Aggregate,
    AggregateFunction,
    SummingPipeline,
    Window,
)
from stream_processor.pipeline.sql_expression import check_aggregate
from stream_processor.spark_internals import stateful
from stream_processor.steps.aggregation import added, differences, is_beyond, numbers
from stream_processor.steps.contributions import check_numbers, contributed, contributions, parts_of
from stream_processor.steps.dead_letters import LETTER
from stream_processor.steps.encode import encode_record, encode_source, to_records
from stream_processor.steps.functions import Functions, filled
from stream_processor.steps.keys import NUL, group_problems, has_group, values_of
from stream_processor.steps.outcomes import WITHHELD, observe_withheld
from stream_processor.steps.state import entries, known_rows
from stream_processor.steps.windows import check_windows, columns_of, follow_clock, observe_late

MAX_SET, MAX_MAX_SET = 1_000, 10_000
"""Bounds the values of a set: the default, and the most that a file may ask for."""
TEXTS: tuple[Kind, ...] = ("string", "bytes", "message")
"""The kinds with values that have no bound of their own."""
_AGGREGATE = re.compile(r"(\w+)\s*\((.*)\)")


@dataclass(frozen=True, kw_only=True)
class AggregatePipeline(SummingPipeline):
    """Keeps one message per group, and window if there are any; the group stands in `group_fields`, one per path."""

    numbers_key = "keep.aggregate"

    group_fields: tuple[FieldDescriptor, ...]

    @override
    @classmethod
    def compiled(cls, names: Compilation) -> Self:
        group = names.group()
        _check_fields_of(names, group)
        keep = cast(dict[str, str], names.definition.keep.aggregate)
        windows = WINDOW_FIELDS if names.definition.window else ()
        reserved = (*(path.names[-1] for path in group.paths), *windows)
        primary_key, scope = names.primary_key(), scope_of(names.row, element_of(group.element))

        def refused(function: str, field: str) -> str | None:
            if function in ("min", "max") and not names.definition.inserts_only:
                return f"{function} cannot be taken back when a row changes; say insert_only: true if none does"
            filled_by = {field, f"{field}{TRUNCATED}"} if function == "collect_set" else {field}
            taken = sorted(filled_by.intersection(reserved))
            return f"{taken[0]} is filled with the group or its window" if taken else None

        return cls(
            **names.common,
            group=group,
            primary_key=primary_key,
            aggregates=tuple(aggregates_of(names, cls.numbers_key, keep, scope, refused)),
            group_fields=tuple(_group_field(names, path) for path in group.paths),
            window=_window(names),
        )

    @property
    @override
    def counts(self) -> bool:
        return True

    @property
    @override
    def written_under(self) -> tuple[str, ...]:
        return super().written_under + (() if self.window is None else WINDOW_FIELDS)

    @property
    @override
    def payload_rows(self) -> int:
        """The texts of a group's message may be of as many rows. Sets have half of the record."""
        rows = sum(each.function in ("min", "max") and kind(each.field) in TEXTS for each in self.aggregates)
        return rows * (2 if any(each.limit for each in self.aggregates) else 1)

    @override
    def key_problem(self, name: str, row: Column) -> Column:
        return F.when(has_group(row, self.group), F.coalesce(*group_problems(name, row, self.group)))

    @override
    def checked(self, changes: DataFrame) -> DataFrame:
        return check_numbers(check_windows(changes, self.window), self)

    @override
    def records(self, read: Sequence[DataFrame], partitions: int, epoch: int, functions: Functions) -> DataFrame:
        [changes] = read
        changes = changes.withColumn("committed", F.unix_micros("change.source.commit_time"))
        if self.events:
            events = contributed(changes, "after", "current", self, functions)
            sourced = events.withColumn("source", encode_source(F.col("change.source"), functions))
            lines = added(follow_clock(sourced, self.window), self, functions)
        else:
            summed = contributions(changes, self, functions)
            rows = entries(summed, self, functions, ["committed", *columns_of(self.window)]).drop("payload")
            known = known_rows(rows, self, every_change=True)
            lines = differences(follow_clock(known, self.window), self, functions)
        return to_records(self._groups(lines, epoch, functions), partitions, functions)

    def _groups(self, lines: DataFrame, epoch: int, functions: Functions) -> DataFrame:
        """Returns `key`, `deleted` and `record` per changed group; a group without rows is deleted. Letters pass.

        The record's epoch is `epoch`, the life of the checkpoint, for its sequence is a count. A group with a number
        that does not fit its field is withheld: a sum is never cut.
        """
        ends = self.window is not None and self.window.keep is not None
        parts = parts_of(self)
        names, folds = [part.name for part in parts], [part.fold for part in parts]
        summed = stateful("groups.GroupSums", lines, names, folds, ends)
        groups = observe_late(summed) if ends else summed
        payload = functions.encode(self._message(), self.sink.full_name)
        has_rows = F.coalesce(F.col("rows") > 0, F.lit(False))
        judged = groups.withColumn(WITHHELD, has_rows & is_beyond(self))
        deleted = (F.col("rows") == 0) | F.col("ended") | F.col(WITHHELD)
        encoded = judged.withColumn("payload", F.when(~deleted, payload))
        full = encode_record(F.lit(epoch).cast("long"), F.col("ticks"), F.col("source"), F.col("payload"), functions)
        lines = encoded.select("key", deleted.alias("deleted"), full.alias("record"), LETTER, WITHHELD)
        return observe_withheld(lines).drop(WITHHELD)

    def _message(self) -> Column:
        """Returns the row of the sink's message; fields that are neither the group's nor an aggregate's stay unset."""
        groups = values_of(F.substring_index("key", NUL, 1), self.group)
        columns = {field.name: value for field, value in zip(self.group_fields, groups, strict=True)}
        if self.window is not None:
            key = F.split("key", NUL)
            columns |= {name: key.getItem(place) for place, name in enumerate(WINDOW_FIELDS, start=1)}
        return filled(self.sink, columns | numbers(self))


def aggregates_of(
    names: Compilation, key: str, texts: Mapping[str, str], scope: Scope, refused: Callable[[str, str], str | None]
) -> Iterator[Aggregate]:
    """Yields the aggregates in the `texts` at a key of the file, by field; their arguments see the names of `scope`.

    `refused` says of a function and a field why they cannot go together. Raises PipelineFileError.
    """
    for name, text in texts.items():
        with names.at(f"{key}.{name}"):
            function, argument, limit = _parsed(text)
            if (problem := refused(function, name)) is not None:
                raise ContractError(problem)
            aggregate = Aggregate(field_in(names.sink, name), function, argument, limit)
            check_aggregate(aggregate, scope)
            if limit:
                _check_truncated(names, aggregate, texts)
        yield aggregate


def _parsed(text: str) -> tuple[AggregateFunction, str | None, int]:
    """Returns the function that `text` calls, its argument, and the bound of a set.

    Raises ContractError for any other form.
    """
    call = _AGGREGATE.fullmatch(text)
    if call is None:
        raise ContractError(f"{text!r} is not of the form count(*) or sum(...)")
    name, argument = call[1].lower(), call[2].strip()
    function = next((each for each in AGGREGATE_FUNCTIONS if each == name), None)
    if function is None:
        raise ContractError(f"no aggregate {call[1]!r}; {suggest(name, AGGREGATE_FUNCTIONS)}")
    if (function == "count") != (argument == "*"):
        raise ContractError("count counts rows: count(*)" if function == "count" else f"{text!r} needs an expression")
    if function == "collect_set":
        return function, *_bounded(argument)
    return function, None if function == "count" else argument, 0


def _bounded(argument: str) -> tuple[str, int]:
    """Returns the expression, and how many values there are at most. Raises ContractError for a bound of no use."""
    bound = re.fullmatch(r"(.+),\s*(\d+)", argument)
    if bound is None:
        return argument, MAX_SET
    if not 1 <= int(bound[2]) <= MAX_MAX_SET:
        raise ContractError(f"a set has 1 to {MAX_MAX_SET:,} values, not {bound[2]}")
    return bound[1].strip(), int(bound[2])


def _check_truncated(names: Compilation, aggregate: Aggregate, texts: Mapping[str, str]) -> None:
    """Whether the message can say that a set lacks values. Raises ContractError."""
    field = field_in(names.sink, aggregate.truncated)
    if kind(field) != "bool" or field.is_repeated:
        raise ContractError(f"{field.full_name} is no bool, which says whether the set lacks values")
    if field.name in texts:
        raise ContractError(f"{field.name} says whether the set lacks values; it is filled by that alone")


def _check_fields_of(names: Compilation, group: KeyPaths) -> None:
    """Raises PipelineFileError if two values of the group go into one field."""
    paths: dict[str, FieldPath] = {}
    for path in group.paths:
        if (other := paths.setdefault(path.names[-1], path)) is not path:
            problem = f"{other} and {path} both go into the field {path.names[-1]}: rename one in a pipeline before"
            raise names.wrong("group_by", problem)


def _group_field(names: Compilation, group: FieldPath) -> FieldDescriptor:
    """Returns the field of the sink's message that the values at one path of the group go into."""
    with names.at("group_by"):
        field = field_in(names.sink, group.names[-1])
        same = field.type == group.fields[-1].type and decimal_of(field) == group.decimal
        if kind(field) != group.kind or field.is_repeated or not same:
            raise ContractError(f"{group} does not fit the field {field.full_name}, which the group goes into")
    return field


def _window(names: Compilation) -> Window | None:
    window = names.definition.window
    if window is None:
        return None
    with names.at("window"):
        for name in WINDOW_FIELDS:
            if kind(field_in(names.sink, name)) != "timestamp":
                raise ContractError(f"{names.sink.full_name}.{name} is not a Timestamp")
    time, hop = names.path("window.time", window.time, ("timestamp",)), window.hop or window.size
    return Window(time, window.size, hop, window.lateness, window.keep)
