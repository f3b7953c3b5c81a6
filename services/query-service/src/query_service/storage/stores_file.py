"""Reads the stores file, and checks it against the contract."""

from collections.abc import Sequence
from pathlib import Path

from query_service.errors import StoresFileError
from statecast.descriptors import MessageTypes
from statecast.row_fields import RowFieldError, check_owner, check_private
from statecast_domains.domain_file import BYTES, JSON
from statecast_domains.errors import DomainFileError
from statecast_domains.section_files import read_sections, schema_of
from statecast_domains.store_definition import StoreDefinition as StoreDefinition
from statecast_domains.store_definition import StoresFile
from statecast_service.settings import suggest

LOCK = "lock"
SET_ASIDE = "set-aside"
UNFINISHED = ".unfinished"
"""Where directories of stores lie until they are complete; nothing in it outlives the process."""
CHECKPOINTS = ".checkpoints"
"""Where the files lie that peers and backups read; nothing in it outlives the process, either."""
OTHER_DIRECTORIES = frozenset({SET_ASIDE, UNFINISHED, CHECKPOINTS})
"""Those of a data directory that are no store's."""
_TAKEN = OTHER_DIRECTORIES | {".", "..", LOCK}


def read_stores(path: Path, types: MessageTypes | None = None) -> tuple[StoreDefinition, ...]:
    """Returns the stores of a file by name. Raises StoresFileError with one line.

    Values are messages of `types`, by default of the contract.
    """
    try:
        stores = read_sections(path, StoresFile, DomainFileError, "a stores file").stores
    except DomainFileError as error:
        raise StoresFileError(str(error)) from error
    if not stores:
        raise StoresFileError(f"{path}: stores is empty: name at least one")
    types = types or MessageTypes.read()
    for index, store in enumerate(stores):
        problem = (
            _name_problem(store, stores[:index])
            or _message_problem(store, types)
            or _rights_problem(store, types)
            or _combination_problem(store)
        )
        if problem is not None:
            raise StoresFileError(f"{path}: stores[{index}].{problem}")
    return tuple(sorted(stores, key=lambda store: store.name))


def stores_schema() -> str:
    return schema_of(StoresFile, "The stores of Statecast")


def _name_problem(store: StoreDefinition, earlier: Sequence[StoreDefinition]) -> str | None:
    if store.name in {other.name for other in earlier}:
        return f"name `{store.name}` is there twice: remove one"
    if store.topic in {other.topic for other in earlier}:
        return f"topic `{store.topic}` is another store's: remove one"
    if store.name in _TAKEN and not store.in_memory:
        return f"name `{store.name}` is no name of a store's directory: choose another one"
    return None


def _message_problem(store: StoreDefinition, types: MessageTypes) -> str | None:
    if not store.has_fields:
        if not store.plain:
            return f"message `{store.message}` needs `format: plain`: add it, or name a message of the contract"
        return None
    if store.message not in types.fields:
        valid = types.rows | ({JSON, BYTES} if store.plain else set())
        return f"message `{store.message}` is not in the contract, nor mounted: {suggest(store.message, valid)}"
    return None


def _rights_problem(store: StoreDefinition, types: MessageTypes) -> str | None:
    if store.message == BYTES and (store.readers != "staff" or store.private):
        return "message `bytes` is shown to nobody: remove readers and private, or name a message"
    if not store.has_fields:
        return None
    row = types.message_class(store.message)
    key = "readers.field"
    try:
        if store.owner is not None:
            check_owner(row, store.owner)
        for index, private in enumerate(store.private):
            key = f"private[{index}]"
            check_private(row, private.path.split("."), private.owner)
    except RowFieldError as error:
        return f"{key}: {error}" + (f": {suggest(error.wrong, error.valid)}" if error.wrong else "")
    return None


def _combination_problem(store: StoreDefinition) -> str | None:
    if not store.plain:
        if store.retain is not None:
            return "retain needs `format: plain`: remove it; rows of a keyed topic are deleted by the processor"
        if store.partitioner != "murmur2":
            return "partitioner needs `format: plain`: remove it; keyed topics are partitioned by murmur2"
    if store.retain is not None and store.history and store.history.age and store.history.age > store.retain:
        return "history.age is above retain, and versions go with their rows: lower it"
    return None
