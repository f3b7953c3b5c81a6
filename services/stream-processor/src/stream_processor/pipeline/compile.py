"""Resolves the names of a pipeline's file by the contract, and checks that every type is fit for its use."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from google.protobuf.descriptor import Descriptor

from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile, misplaced
from statecast_domains.sections import OwnerSection
from stream_processor.errors import ContractError
from stream_processor.pipeline.fields import (
    Contract,
    FieldPath,
    KeyPaths,
    Kind,
    Scope,
    Type,
    check_names,
    field_in,
    kind,
    of_field,
    scope_of,
)
from stream_processor.pipeline.pipeline import Join
from stream_processor.pipeline.sql_expression import check_condition, check_field

OPERATION = "statecast.change.v1.Operation"
SOURCE = "statecast.change.v1.Source"
KEY_KINDS: tuple[Kind, ...] = ("string", "integer", "enum", "bool", "decimal")
_OWN_KEYS: Mapping[str, str] = {}


class Compilation:
    """A pipeline's file with the names that it has by the contract, for the shape that makes a pipeline of it.

    Each method raises PipelineFileError, with the key of the file and the nearest valid name.
    """

    def __init__(
        self, file: str, definition: PipelineFile, contract: Contract, names: Mapping[str, str] = _OWN_KEYS
    ) -> None:
        """Checks all that does not depend on the shape; `names` has the keys that the file calls otherwise."""
        self.file, self.definition, self.contract = file, definition, contract
        self._names = names
        for key, problem in misplaced(definition):
            raise self.wrong(key, problem)
        with self.at("source.message"):
            self.change, self.row = _change(contract, definition)
            check_names(self.row)
        with self.at("sink.message"):
            name = definition.sink.message
            self.sink = self.row if name is None else contract.message(name)
        if definition.keep.shape != "route":
            self._check_store()
        self.joins = tuple(self._joins())
        if definition.where is not None:
            with self.at("where"):
                check_condition(definition.where, scope_of(self.row, {}))
        same, time = definition.source.deduplicate, definition.source.time
        self.deduplicate = None if same is None else self.key("source.deduplicate.by", same.by)
        self.time = None if time is None else self.path("source.time", time, ("timestamp",))

    @property
    def common(self) -> dict[str, Any]:
        """The arguments of a pipeline of any shape, without its `group`."""
        names = ("file", "definition", "change", "row", "sink", "joins", "deduplicate", "time")
        return {name: getattr(self, name) for name in names}

    def wrong(self, key: str, problem: str) -> PipelineFileError:
        """Returns the error of a key of the file."""
        return PipelineFileError(self.file, self._names.get(key, key), problem)

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Makes a ContractError one of a key of the file."""
        try:
            yield
        except ContractError as error:
            raise self.wrong(key, str(error)) from error
        except RecursionError as error:
            raise self.wrong(key, "is nested too deeply") from error

    def path(self, key: str, text: str, kinds: tuple[Kind, ...], may_repeat: bool = False) -> FieldPath:
        """Returns the path in the row that `text` names, to a value of one of these kinds."""
        with self.at(key):
            path = self.contract.path(self.row, text, self.definition.source.topic)
        if path.kind not in kinds:
            raise self.wrong(key, f"{path} is of type {path.kind}; it must be one of: {', '.join(kinds)}")
        if path.repeated and not may_repeat:
            raise self.wrong(key, f"{path} gives many values of one row; it must give one")
        return path

    def group(self, single: str = "") -> KeyPaths:
        """Returns the group, of which a row has one value for the sake of `single`, and where it has several paths."""
        texts = _texts(self.definition.group_by)
        paths = tuple(self.path("group_by", text, KEY_KINDS, may_repeat=True) for text in texts)
        needs = single or ("a group of several paths" if len(paths) > 1 else "")
        for each in paths:
            if each.repeated and needs:
                raise self.wrong("group_by", f"{each} gives many values of one row; {needs} needs one")
        return KeyPaths(paths)

    def key(self, key: str, paths: str | list[str]) -> KeyPaths:
        """Returns the paths at a key of the file that together name something."""
        return KeyPaths(tuple(self.path(key, text, KEY_KINDS) for text in _texts(paths)))

    def primary_key(self) -> KeyPaths | None:
        """Returns the row's key, if the file says it."""
        paths = self.definition.source.key
        return None if paths is None else self.key("source.key", paths)

    def scope(self, explode: FieldPath | None = None) -> Scope:
        """Returns the names that expressions see where a message is made of a row."""
        tables = {join.name: Type("message", declared=join.message) for join in self.joins}
        return scope_of(self.row, tables | element_of(explode))

    def check_select(self, scope: Scope) -> None:
        """Checks that each expression of `select` fits its field."""
        for name, sql in (self.definition.select or {}).items():
            with self.at(f"select.{name}"):
                check_field(sql, field_in(self.sink, name), scope)

    def _joins(self) -> Iterator[Join]:
        for number, join in enumerate(self.definition.joins):
            with self.at(f"joins[{number}].message"):
                message = self.contract.message(join.message)
            key = self.path(f"joins[{number}].key", join.key, KEY_KINDS)
            taken = [*self.row.fields_by_name, "row", "element"]
            taken += [other.as_ for other in self.definition.joins[:number]]
            if join.as_ in taken:
                raise self.wrong(f"joins[{number}].as", f"{join.as_} already names something else")
            yield Join(join.topic, message, key, join.as_)

    def _check_store(self) -> None:
        """Whether the store's message is the one that its name is derived from, and its readers are named by a text."""
        if self.definition.sink.message is None and self.row.full_name != self.definition.row_message:
            problem = f"is missing: the change's name does not tell that of its rows: write {self.row.full_name}"
            raise self.wrong("sink.message", problem)
        readers = self.definition.kept_as.readers
        if isinstance(readers, OwnerSection):
            with self.at("store.readers.field"):
                field = field_in(self.sink, readers.field)
                if kind(field) != "string" or field.is_repeated:
                    raise ContractError(f"{field.full_name} is no text, with which a consumer's id could be compared")


def element_of(path: FieldPath | None) -> dict[str, Type]:
    """Returns the values that `element` names in expressions beside the elements of the path."""
    return {} if path is None else {"element": of_field(path.fields[-1]).element}


def _change(contract: Contract, definition: PipelineFile) -> tuple[Descriptor, Descriptor]:
    """Returns the source's change message, and that of its rows; of a table or of events both are that of its rows."""
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
