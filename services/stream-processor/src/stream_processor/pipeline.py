"""A pipeline file checked against the contract: every name resolved, every type fit for its use."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from stream_processor import pipeline_file
from stream_processor.contract import Contract, FieldPath, Kind
from stream_processor.errors import ContractError, PipelineFileError
from stream_processor.pipeline_file import PipelineFile

OPERATION = "statecast.change.v1.Operation"
SOURCE = "statecast.change.v1.Source"
KEY_KINDS: tuple[Kind, ...] = ("string", "integer", "enum", "bool")
Found = TypeVar("Found")
SORT_KINDS: tuple[Kind, ...] = ("timestamp", "integer", "string")


@dataclass(frozen=True)
class Pipeline:
    """What a pipeline does, in terms of the contract."""

    file: str
    definition: PipelineFile
    change: Descriptor
    row: Descriptor
    group: FieldPath
    member: FieldPath | None = None
    sort: FieldPath | None = None

    @property
    def name(self) -> str:
        """The pipeline's name, unique among those that run together."""
        return self.definition.name


def read(file: Path, contract: Contract) -> Pipeline:
    """Reads and checks a file. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    return check(str(file), pipeline_file.read(file), contract)


def check(file: str, definition: PipelineFile, contract: Contract) -> Pipeline:
    """Checks a definition that came from `file`. Raises PipelineFileError."""

    def at(key: str, look_up: Callable[[], Found]) -> Found:
        try:
            return look_up()
        except ContractError as error:
            raise PipelineFileError(file, key, str(error)) from error

    change, row = at("source.message", lambda: _change(contract, definition.source.message))
    group = at("group_by", lambda: _typed(contract.path(row, definition.group_by), KEY_KINDS))
    members = definition.keep.members
    if members is None:
        return Pipeline(file, definition, change, row, group)
    member = at("keep.members.key", lambda: _single(_typed(contract.path(row, members.key), KEY_KINDS)))
    sort = at("keep.members.sort", lambda: _single(_typed(contract.path(row, members.sort), SORT_KINDS)))
    return Pipeline(file, definition, change, row, group, member, sort)


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


def _typed(path: FieldPath, kinds: tuple[Kind, ...]) -> FieldPath:
    if path.kind not in kinds:
        raise ContractError(f"{path} is of type {path.kind}; it must be one of: {', '.join(kinds)}")
    return path


def _single(path: FieldPath) -> FieldPath:
    if path.repeated:
        raise ContractError(f"{path} gives many values of one row; it must give one")
    return path
