"""Checks a pipeline's file against the contract: every name resolved, every type fit for its use."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from statecast_domains import pipeline_file
from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile, misplaced
from statecast_domains.sections import MembersSection, OwnerSection, RouteSection
from statecast_domains.source_sections import TableJoinSection
from statecast_service.settings import suggest
from stream_processor.errors import ContractError
from stream_processor.pipeline.decimals import decimal_of
from stream_processor.pipeline.fields import (
    Contract,
    FieldPath,
    KeyPaths,
    Kind,
    Scope,
    Type,
    field_in,
    kind,
    of_field,
    scope_of,
)
from stream_processor.pipeline.pipeline import (
    AGGREGATE_FUNCTIONS,
    MAX_MAX_SET,
    MAX_SET,
    WINDOW_FIELDS,
    Aggregate,
    AggregateFunction,
    AggregatePipeline,
    Join,
    JoinSide,
    LatestPipeline,
    MembersPipeline,
    Pipeline,
    PipelineBase,
    RoutePipeline,
    TableJoinPipeline,
    TotalsPipeline,
    Window,
)
from stream_processor.pipeline.sql_expression import check_aggregate, check_condition, check_field, type_of

OPERATION = "statecast.change.v1.Operation"
SOURCE = "statecast.change.v1.Source"
KEY_KINDS: tuple[Kind, ...] = ("string", "integer", "enum", "bool", "decimal")
PARTITION_KINDS: tuple[Kind, ...] = ("string", "integer", "enum")
_AGGREGATE = re.compile(r"(\w+)\s*\((.*)\)")
SORT_KINDS: tuple[Kind, ...] = ("timestamp", "integer", "string", "decimal")
_OWN_KEYS: Mapping[str, str] = {}
_JOINED_KEYS: Mapping[str, str] = {"source.message": "table_join.message", "group_by": "table_join.key"}
"""The file's names of the keys by which a joined table is checked alone."""


def read(file: Path, contract: Contract) -> Pipeline:
    """Reads and checks a file. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    return check(str(file), pipeline_file.read(file), contract)


def check(file: str, definition: PipelineFile, contract: Contract) -> Pipeline:
    """Checks a definition that came from `file`. Raises PipelineFileError."""
    return _Check(file, definition, contract).pipeline()


class _Check:
    """The parts of one file's check, which share the resolved names."""

    def __init__(
        self, file: str, definition: PipelineFile, contract: Contract, names: Mapping[str, str] = _OWN_KEYS
    ) -> None:
        """`names` has the keys that the file calls otherwise than the definition."""
        self._file = file
        self._names = names
        self._definition = definition
        self._contract = contract
        for key, problem in misplaced(definition):
            raise self._wrong(key, problem)
        with self._at("source.message"):
            self._change, self._row = _change(contract, definition)
        with self._at("sink.message"):
            name = definition.sink.message
            self._sink = self._row if name is None else contract.message(name)
        if definition.keep.shape != "route":
            self._check_store()

    def pipeline(self) -> Pipeline:
        keep, joins = self._definition.keep, tuple(self._joins())
        if self._definition.where is not None:
            with self._at("where"):
                check_condition(self._definition.where, scope_of(self._row, {}))
        source = self._definition.source
        same, time = source.deduplicate, source.time
        base = PipelineBase(
            file=self._file,
            definition=self._definition,
            change=self._change,
            row=self._row,
            sink=self._sink,
            deduplicate=None if same is None else self._key("source.deduplicate.by", same.by),
            time=None if time is None else self._path("source.time", time, ("timestamp",)),
        )
        if keep.members is not None:
            return self._members(base, keep.members, joins)
        if keep.aggregate is not None:
            return self._aggregate(base, keep.aggregate)
        if keep.route is None:
            return self._latest(base, joins)
        if keep.route.totals is not None:
            return self._running_totals(base, keep.route, keep.route.totals, joins)
        return self._route(base, keep.route, joins)

    def _latest(self, base: PipelineBase, joins: tuple[Join, ...]) -> LatestPipeline:
        group = self._group()
        key = self._primary_key() or group
        if set(key.texts) != set(group.texts):
            problem = f"{group} is not the row's key {key}: latest keeps one row per key; others go with members"
            raise self._wrong("group_by", problem)
        if self._definition.table_join is not None:
            return self._table_join(base, group, self._definition.table_join)
        self._check_select(joins)
        return LatestPipeline(**vars(base), primary_key=group, joins=joins)

    def _table_join(self, base: PipelineBase, key: KeyPaths, section: TableJoinSection) -> TableJoinPipeline:
        own, others = self._definition.sides
        other = _Check(self._file, others, self._contract, _JOINED_KEYS).pipeline()
        if section.as_ in (*self._row.fields_by_name, "row"):
            raise self._wrong("table_join.as", f"{section.as_} already names something else")
        self._check_fields(scope_of(self._row, {section.as_: Type("message", declared=other.row)}))
        return TableJoinPipeline(
            **vars(base),
            primary_key=key,
            sides=(
                JoinSide(**{**vars(base), "definition": own}, primary_key=key),
                JoinSide(**{**vars(other), "section": "table_join"}),
            ),
            joined_as=section.as_,
            join_type=section.type,
        )

    def _members(self, base: PipelineBase, keep: MembersSection, joins: tuple[Join, ...]) -> MembersPipeline:
        group = self._group()
        member = self._key("keep.members.key", keep.key)
        sort = self._path("keep.members.sort", keep.sort, SORT_KINDS)
        key = self._primary_key() or member
        if missing := set(key.texts) - {*group.texts, str(sort), *member.texts}:
            problem = f"{member} lacks {', '.join(sorted(missing))} of source.key: two rows could be one member"
            raise self._wrong("keep.members.key", problem)
        self._check_select(joins)
        return MembersPipeline(**vars(base), group=group, member=member, sort=sort, primary_key=key, joins=joins)

    def _aggregate(self, base: PipelineBase, keep: dict[str, str]) -> AggregatePipeline:
        group = self._group()
        return AggregatePipeline(
            **vars(base),
            group=group,
            primary_key=self._primary_key(),
            aggregates=tuple(self._aggregates(AggregatePipeline.numbers_key, keep, group)),
            group_fields=tuple(map(self._group_field, group.paths)),
            window=self._window(),
        )

    def _route(self, base: PipelineBase, keep: RouteSection, joins: tuple[Join, ...]) -> RoutePipeline:
        group = self._group()
        explode = self._explode(group)
        self._check_select(joins, explode)
        self._check_partition_by(joins, explode)
        return RoutePipeline(**vars(base), group=group, operations=_operations(keep), explode=explode, joins=joins)

    def _running_totals(
        self, base: PipelineBase, keep: RouteSection, totals: dict[str, str], joins: tuple[Join, ...]
    ) -> TotalsPipeline:
        group = self._group()
        if group.repeated:
            raise self._wrong("group_by", f"{group} gives many values of one row; keep.route.totals needs one")
        self._check_select(joins)
        for name in totals.keys() & (self._definition.select or {}).keys():
            raise self._wrong(f"{TotalsPipeline.numbers_key}.{name}", f"{name} is filled by select")
        return TotalsPipeline(
            **vars(base),
            group=group,
            primary_key=self._primary_key(),
            operations=_operations(keep),
            aggregates=tuple(self._aggregates(TotalsPipeline.numbers_key, totals)),
            joins=joins,
        )

    def _wrong(self, key: str, problem: str) -> PipelineFileError:
        return PipelineFileError(self._file, self._names.get(key, key), problem)

    @contextmanager
    def _at(self, key: str) -> Iterator[None]:
        try:
            yield
        except ContractError as error:
            raise self._wrong(key, str(error)) from error
        except RecursionError as error:
            raise self._wrong(key, "is nested too deeply") from error

    def _path(self, key: str, text: str, kinds: tuple[Kind, ...], may_repeat: bool = False) -> FieldPath:
        with self._at(key):
            path = self._contract.path(self._row, text, self._definition.source.topic)
        if path.kind not in kinds:
            raise self._wrong(key, f"{path} is of type {path.kind}; it must be one of: {', '.join(kinds)}")
        if path.repeated and not may_repeat:
            raise self._wrong(key, f"{path} gives many values of one row; it must give one")
        return path

    def _group(self) -> KeyPaths:
        """The group; one of several paths has one value of each, and so has that of latest, which is the row's key."""
        texts, latest = _texts(self._definition.group_by), self._definition.keep.shape == "latest"
        paths = tuple(self._path("group_by", text, KEY_KINDS, may_repeat=True) for text in texts)
        for each in paths:
            if each.repeated and (latest or len(paths) > 1):
                needs = "latest" if latest else "a group of several paths"
                raise self._wrong("group_by", f"{each} gives many values of one row; {needs} needs one")
        return KeyPaths(paths)

    def _key(self, key: str, paths: str | list[str]) -> KeyPaths:
        return KeyPaths(tuple(self._path(key, text, KEY_KINDS) for text in _texts(paths)))

    def _primary_key(self) -> KeyPaths | None:
        """The row's key, if the file says it."""
        paths = self._definition.source.key
        return None if paths is None else self._key("source.key", paths)

    def _joins(self) -> Iterator[Join]:
        for number, join in enumerate(self._definition.joins):
            with self._at(f"joins[{number}].message"):
                message = self._contract.message(join.message)
            key = self._path(f"joins[{number}].key", join.key, KEY_KINDS)
            taken = [*self._row.fields_by_name, "row", "element"]
            taken += [other.as_ for other in self._definition.joins[:number]]
            if join.as_ in taken:
                raise self._wrong(f"joins[{number}].as", f"{join.as_} already names something else")
            yield Join(join.topic, message, key, join.as_)

    def _scope(self, joins: tuple[Join, ...], explode: FieldPath | None) -> Scope:
        """The names that expressions see where a message is made of a row."""
        tables = {join.name: Type("message", declared=join.message) for join in joins}
        return scope_of(self._row, tables | _element(explode))

    def _check_partition_by(self, joins: tuple[Join, ...], explode: FieldPath | None) -> None:
        sql = self._definition.sink.partition_by
        with self._at("sink.partition_by"):
            result = None if sql is None else type_of(sql, self._scope(joins, explode))
            if result is not None and (result.repeated or result.kind not in PARTITION_KINDS):
                raise ContractError(f"is of type {result}; it must be an integer or a text")

    def _check_select(self, joins: tuple[Join, ...], explode: FieldPath | None = None) -> None:
        self._check_fields(self._scope(joins, explode))

    def _check_fields(self, scope: Scope) -> None:
        for name, sql in (self._definition.select or {}).items():
            with self._at(f"select.{name}"):
                check_field(sql, field_in(self._sink, name), scope)

    def _aggregates(self, key: str, keep: dict[str, str], group: KeyPaths | None = None) -> Iterator[Aggregate]:
        """The aggregates at `key` of the file; the `group` fills fields of their message, if it is theirs."""
        scope = scope_of(self._row, _element(None if group is None else group.element))
        reserved: tuple[str, ...] = ()
        if group is not None:
            windows = WINDOW_FIELDS if self._definition.window else ()
            reserved = (*(path.names[-1] for path in group.paths), *windows)
        for name, text in keep.items():
            with self._at(f"{key}.{name}"):
                function, argument, limit = _parse_aggregate(text)
                if function == "collect_set" and key == TotalsPipeline.numbers_key:
                    raise ContractError("running totals are count, sum and avg")
                totals = key == TotalsPipeline.numbers_key
                if function in ("min", "max") and (totals or not self._definition.inserts_only):
                    raise ContractError(_no_extremes(function, key))
                if name in reserved:
                    raise ContractError(f"{name} is filled with the group or its window")
                aggregate = Aggregate(field_in(self._sink, name), function, argument, limit)
                check_aggregate(aggregate, scope)
                if limit:
                    self._check_truncated(aggregate, keep)
            yield aggregate

    def _check_truncated(self, aggregate: Aggregate, keep: dict[str, str]) -> None:
        """Whether the message can say that a set lacks values. Raises ContractError."""
        field = field_in(self._sink, aggregate.truncated)
        if kind(field) != "bool" or field.is_repeated:
            raise ContractError(f"{field.full_name} is no bool, which says whether the set lacks values")
        if field.name in keep:
            raise ContractError(f"{field.name} says whether the set lacks values; it is filled by that alone")

    def _group_field(self, group: FieldPath) -> FieldDescriptor:
        """The field of the sink's message that the values at one path of the group go into."""
        with self._at("group_by"):
            field = field_in(self._sink, group.names[-1])
            same = field.type == group.fields[-1].type and decimal_of(field) == group.decimal
            if kind(field) != group.kind or field.is_repeated or not same:
                raise ContractError(f"{group} does not fit the field {field.full_name}, which the group goes into")
        return field

    def _window(self) -> Window | None:
        window = self._definition.window
        if window is None:
            return None
        with self._at("window"):
            for name in WINDOW_FIELDS:
                if kind(field_in(self._sink, name)) != "timestamp":
                    raise ContractError(f"{self._sink.full_name}.{name} is no Timestamp")
        time, hop = self._path("window.time", window.time, ("timestamp",)), window.hop or window.size
        return Window(time, window.size, hop, window.lateness, window.keep)

    def _check_store(self) -> None:
        """Whether the store's message is the one that its name is derived from, and its readers are named by a text."""
        if self._definition.sink.message is None and self._row.full_name != self._definition.row_message:
            problem = f"is missing: the change's name does not tell that of its rows: write {self._row.full_name}"
            raise self._wrong("sink.message", problem)
        readers = self._definition.kept_as.readers
        if isinstance(readers, OwnerSection):
            with self._at("store.readers.field"):
                field = field_in(self._sink, readers.field)
                if kind(field) != "string" or field.is_repeated:
                    raise ContractError(f"{field.full_name} is no text, with which a consumer's id could be compared")

    def _explode(self, group: KeyPaths) -> FieldPath | None:
        text = self._definition.explode
        if text is None:
            if group.repeated:
                raise self._wrong("group_by", f"{group} gives many values of one row; explode them")
            return None
        with self._at("explode"):
            path = self._contract.path(self._row, text, self._definition.source.topic)
        if not path.fields[-1].is_repeated:
            raise self._wrong("explode", f"{path} is not repeated, there is nothing to explode")
        if group.repeated and (group.element is None or str(group.element) != str(path)):
            raise self._wrong("group_by", f"{group} gives many values of one element; it must give one")
        return path


def _change(contract: Contract, definition: PipelineFile) -> tuple[Descriptor, Descriptor]:
    """The source's change message, and the message of its rows; of a table or of events both are that of its rows."""
    name = definition.source.message
    message = contract.message(name)
    if definition.source.row_values is not None:
        return message, message
    types = {field.name: field.message_type or field.enum_type for field in message.fields}
    names = {field: type_.full_name for field, type_ in types.items() if type_ is not None}
    row, needed = types.get("after"), {"operation": OPERATION, "source": SOURCE, "before": names.get("after")}
    if not isinstance(row, Descriptor) or not needed.items() <= names.items():
        raise ContractError(f"{name} is not a change: it needs operation, source, before and after")
    return message, row


def _texts(paths: str | list[str]) -> list[str]:
    return paths if isinstance(paths, list) else [paths]


def _element(path: FieldPath | None) -> dict[str, Type]:
    """The values that `element` names in expressions beside the elements of the path."""
    return {} if path is None else {"element": of_field(path.fields[-1]).element}


def _operations(route: RouteSection) -> tuple[str, ...]:
    return tuple(f"OPERATION_{name.upper()}" for name in route.operations)


def _no_extremes(function: str, key: str) -> str:
    if key == TotalsPipeline.numbers_key:
        return f"{function} cannot be taken back when a row changes; running totals are count, sum and avg"
    return f"{function} cannot be taken back when a row changes; say insert_only: true if none does"


def _parse_aggregate(text: str) -> tuple[AggregateFunction, str | None, int]:
    """The function that `text` calls, its argument, and the bound of a set. Raises ContractError for any other form."""
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
    """The expression, and how many values there are at most. Raises ContractError for a bound of no use."""
    bound = re.fullmatch(r"(.+),\s*(\d+)", argument)
    if bound is None:
        return argument, MAX_SET
    if not 1 <= int(bound[2]) <= MAX_MAX_SET:
        raise ContractError(f"a set has 1 to {MAX_MAX_SET:,} values, not {bound[2]}")
    return bound[1].strip(), int(bound[2])
