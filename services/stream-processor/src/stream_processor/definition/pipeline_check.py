"""Checks a pipeline's file against the contract: every name resolved, every type fit for its use."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from stream_processor.definition import aggregates, pipeline_file
from stream_processor.definition.aggregates import Aggregate
from stream_processor.definition.contract import Contract, FieldPath, Kind, kind
from stream_processor.definition.expression_check import check_aggregate, check_condition, check_field
from stream_processor.definition.pipeline import Join, Pipeline, Selected, Window
from stream_processor.definition.pipeline_file import PipelineFile
from stream_processor.definition.section_rules import first_misplaced
from stream_processor.definition.sql_types import Scope, Type, of_field, of_message
from stream_processor.errors import ContractError, PipelineFileError

OPERATION = "statecast.change.v1.Operation"
SOURCE = "statecast.change.v1.Source"
KEY_KINDS: tuple[Kind, ...] = ("string", "integer", "enum", "bool")
SORT_KINDS: tuple[Kind, ...] = ("timestamp", "integer", "string")


def read(file: Path, contract: Contract) -> Pipeline:
    """Reads and checks a file. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    return check(str(file), pipeline_file.read(file), contract)


def check(file: str, definition: PipelineFile, contract: Contract) -> Pipeline:
    """Checks a definition that came from `file`. Raises PipelineFileError."""
    return _Check(file, definition, contract).pipeline()


class _Check:
    """The parts of one file's check, which share what was resolved."""

    def __init__(self, file: str, definition: PipelineFile, contract: Contract) -> None:
        self._file = file
        self._definition = definition
        self._contract = contract
        if (wrong := first_misplaced(definition)) is not None:
            raise PipelineFileError(file, *wrong)
        with self._at("source.message"):
            self._change, self._row = _change(contract, definition.source.message)
        with self._at("sink.message"):
            written = definition.sink.message
            self._sink = self._row if written is None else contract.message(written)

    def pipeline(self) -> Pipeline:
        joins = tuple(self._joins())
        self._where()
        group = self._path("group_by", self._definition.group_by, KEY_KINDS)
        member, sort = self._member()
        explode = self._explode(group)
        return Pipeline(
            self._file,
            self._definition,
            self._change,
            self._row,
            self._sink,
            group,
            self._primary_key(group, member),
            member,
            sort,
            tuple(self._aggregates(group)),
            self._group_field(group),
            self._window(),
            joins,
            tuple(self._select(joins)),
            explode,
            self._operations(),
        )

    @contextmanager
    def _at(self, key: str) -> Iterator[None]:
        try:
            yield
        except ContractError as error:
            raise PipelineFileError(self._file, key, str(error)) from error

    def _path(self, key: str, text: str, kinds: tuple[Kind, ...]) -> FieldPath:
        with self._at(key):
            return _typed(self._contract.path(self._row, text), kinds)

    def _single(self, key: str, text: str, kinds: tuple[Kind, ...]) -> FieldPath:
        path = self._path(key, text, kinds)
        if path.repeated:
            raise PipelineFileError(self._file, key, f"{path} gives many values of one row; it must give one")
        return path

    def _field(self, key: str, name: str) -> FieldDescriptor:
        with self._at(key):
            return self._contract.path(self._sink, name).fields[0]

    def _member(self) -> tuple[FieldPath | None, FieldPath | None]:
        members = self._definition.keep.members
        if members is None:
            return None, None
        member = self._single("keep.members.key", members.key, KEY_KINDS)
        return member, self._single("keep.members.sort", members.sort, SORT_KINDS)

    def _primary_key(self, group: FieldPath, member: FieldPath | None) -> FieldPath | None:
        shape, written = self._definition.keep.shape, self._definition.source.key
        if shape == "route":
            return None
        if shape == "latest" and group.repeated:
            raise PipelineFileError(self._file, "group_by", f"{group} gives many values of one row; latest needs one")
        key = member or group if written is None else self._single("source.key", written, KEY_KINDS)
        if shape == "latest" and str(key) != str(group):
            problem = f"{group} is not the row's key {key}: latest keeps one row per key; others go with members"
            raise PipelineFileError(self._file, "group_by", problem)
        return key

    def _joins(self) -> Iterator[Join]:
        for number, join in enumerate(self._definition.joins):
            with self._at(f"joins[{number}].message"):
                message = self._contract.message(join.message)
            key = self._single(f"joins[{number}].key", join.key, KEY_KINDS)
            taken = [*self._row.fields_by_name, "row", "element"]
            taken += [other.as_ for other in self._definition.joins[:number]]
            if join.as_ in taken:
                raise PipelineFileError(self._file, f"joins[{number}].as", f"{join.as_} already names something else")
            yield Join(join.topic, message, key, join.as_)

    def _where(self) -> None:
        if self._definition.where is not None:
            with self._at("where"):
                check_condition(self._definition.where, Scope(self._row, {}))

    def _select(self, joins: tuple[Join, ...]) -> Iterator[Selected]:
        beside = {join.name: of_message(join.message) for join in joins}
        if self._definition.explode is not None:
            beside["element"] = _element(self._contract.path(self._row, self._definition.explode))
        for name, sql in (self._definition.select or {}).items():
            field = self._field(f"select.{name}", name)
            with self._at(f"select.{name}"):
                check_field(sql, field, Scope(self._row, beside))
            yield Selected(field, sql)

    def _aggregates(self, group: FieldPath) -> Iterator[Aggregate]:
        scope = Scope(self._row, {} if group.element is None else {"element": _element(group.element)})
        for name, text in (self._definition.keep.aggregate or {}).items():
            key = f"keep.aggregate.{name}"
            with self._at(key):
                function, argument = aggregates.parse(text)
            if function in ("min", "max") and not self._definition.insert_only:
                problem = f"{function} cannot be taken back when a row changes; say insert_only: true if none does"
                raise PipelineFileError(self._file, key, problem)
            if name in self._filled(group):
                raise PipelineFileError(self._file, key, f"{name} is filled with the group or its window")
            found = Aggregate(self._field(key, name), function, argument)
            with self._at(key):
                check_aggregate(found, scope)
            yield found

    def _filled(self, group: FieldPath) -> tuple[str, ...]:
        """The fields of an aggregate's message that no expression fills."""
        return (group.names[-1], *(("window_start", "window_end") if self._definition.window else ()))

    def _group_field(self, group: FieldPath) -> FieldDescriptor | None:
        if self._definition.keep.aggregate is None:
            return None
        field = self._field("group_by", group.names[-1])
        if kind(field) != group.kind or field.is_repeated or field.type != group.fields[-1].type:
            problem = f"{group} does not fit the field {field.full_name}, which the group goes into"
            raise PipelineFileError(self._file, "group_by", problem)
        return field

    def _window(self) -> Window | None:
        window = self._definition.window
        if window is None:
            return None
        for name in ("window_start", "window_end"):
            if kind(self._field("window", name)) != "timestamp":
                raise PipelineFileError(self._file, "window", f"{self._sink.full_name}.{name} is no Timestamp")
        return Window(self._single("window.time", window.time, ("timestamp",)), window.size, window.lateness)

    def _explode(self, group: FieldPath) -> FieldPath | None:
        written = self._definition.explode
        if written is None:
            if self._definition.keep.shape == "route" and group.repeated:
                raise PipelineFileError(self._file, "group_by", f"{group} gives many values of one row; explode them")
            return None
        with self._at("explode"):
            path = self._contract.path(self._row, written)
        if not path.fields[-1].is_repeated:
            raise PipelineFileError(self._file, "explode", f"{path} is not repeated, there is nothing to explode")
        if group.repeated and (group.element is None or str(group.element) != str(path)):
            problem = f"{group} gives many values of one element; it must give one"
            raise PipelineFileError(self._file, "group_by", problem)
        return path

    def _operations(self) -> tuple[str, ...]:
        route = self._definition.keep.route
        return () if route is None else tuple(f"OPERATION_{name.upper()}" for name in route.operations)


def _change(contract: Contract, name: str) -> tuple[Descriptor, Descriptor]:
    message = contract.message(name)
    types = {field.name: _type_name(field) for field in message.fields}
    row = message.fields_by_name["after"].message_type if "after" in types else None
    fits = types.get("operation") == OPERATION and types.get("source") == SOURCE
    if row is None or not fits or types.get("before") != row.full_name:
        raise ContractError(f"{name} is not a change: it needs operation, source, before and after")
    return message, row


def _type_name(field: FieldDescriptor) -> str:
    declared = field.message_type or field.enum_type
    return "" if declared is None else declared.full_name


def _element(path: FieldPath) -> Type:
    return of_field(path.fields[-1]).element


def _typed(path: FieldPath, kinds: tuple[Kind, ...]) -> FieldPath:
    if path.kind not in kinds:
        raise ContractError(f"{path} is of type {path.kind}; it must be one of: {', '.join(kinds)}")
    return path
