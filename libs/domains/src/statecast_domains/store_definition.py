"""The definition of a store, as it follows from domains and as the query service reads it and passes it on."""

from datetime import timedelta
from typing import Literal

from pydantic import Field

from statecast_domains.domain_file import BYTES, JSON, PlainStoreSection
from statecast_domains.pipeline_file import PipelineFile
from statecast_domains.sections import OwnerSection, Section
from statecast_domains.values import human

_MS = timedelta(milliseconds=1)


class StoreDefinition(PlainStoreSection):
    """One store: its topic, how its records are read, how much of them is kept, and who may read its rows."""

    message: str = Field(
        description="The full name of the message in the values, of the contract or mounted; in plain stores also "
        "`json` or `bytes`. Values are not checked. Clients read no `bytes` through edges."
    )
    format: Literal["state-record", "plain"] = Field(
        "state-record",
        description="`state-record` for keyed topics of the processor; `plain` for the newest value of each record key "
        "in any topic.",
    )
    keeps: Literal["one", "members"] = Field(
        "one", description="`one` value per group, or many `members`, each with a sort value and a name."
    )

    @property
    def in_memory(self) -> bool:
        return self.engine == "memory"

    @property
    def plain(self) -> bool:
        return self.format == "plain"

    @property
    def has_fields(self) -> bool:
        """Whether the fields of its rows are those of a message."""
        return self.message not in (JSON, BYTES)

    @property
    def owner(self) -> str | None:
        """The field of the row that holds the id of its reader; None where no field names one."""
        return self.readers.field if isinstance(self.readers, OwnerSection) else None

    @property
    def group_is_owner(self) -> bool:
        """Whether the group of every key is the id of its reader as well."""
        return isinstance(self.readers, OwnerSection) and self.readers.group

    @property
    def retain_ms(self) -> int | None:
        return None if self.retain is None else self.retain // _MS

    @property
    def versions_ms(self) -> int | None:
        """How long older versions are kept; None where a number of them is, or none."""
        age = None if self.history is None else self.history.age
        return None if age is None else age // _MS

    @property
    def interval_ms(self) -> int | None:
        return None if self.interval is None else self.interval // _MS

    @property
    def entry(self) -> dict[str, object]:
        """The definition as a stores file has it, without keys that have their defaults."""
        chosen = self.model_dump(exclude_defaults=True)
        first = {key: chosen.pop(key) for key in ("name", "topic", "message")}
        return first | {key: _written(value) for key, value in chosen.items()}


class StoresFile(Section):
    """The stores of a query service, the same at all of its instances."""

    stores: list[StoreDefinition] = Field(description="The stores, in any order.")


def keyed_store(pipeline: PipelineFile) -> StoreDefinition:
    """Returns the store of a pipeline that keeps something."""
    # A window is a member of its group, by its start.
    has_members = pipeline.keep.members is not None or pipeline.window is not None
    return StoreDefinition(
        **dict(pipeline.kept_as),
        name=pipeline.name,
        topic=pipeline.sink.topic,
        message=pipeline.sink.message or pipeline.row_message,
        keeps="members" if has_members else "one",
    )


def plain_store(store: PlainStoreSection) -> StoreDefinition:
    """Returns the store of a topic that is served as it is."""
    return StoreDefinition(**dict(store), format="plain")


def _written(value: object) -> object:
    if isinstance(value, dict):
        return {key: _written(each) for key, each in value.items()}
    return human(value) if isinstance(value, timedelta) else value
