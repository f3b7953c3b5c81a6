"""The form of a pipeline's YAML file: which keys there are, and how a wrong one is told."""

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from stream_processor.definition.duration import Duration
from stream_processor.definition.nearest import hint
from stream_processor.definition.sections import (
    DeadLettersSection,
    JoinSection,
    Keep,
    KeepSection,
    MembersSection,
    RouteSection,
    Section,
    SinkSection,
    SourceSection,
    Sql,
    TriggerSection,
    WindowSection,
    one_line,
)
from stream_processor.errors import PipelineFileError


class PipelineFile(Section):
    """One pipeline: from a topic of changes to a keyed topic, or to a plain one."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Names the checkpoint and the metrics.")
    source: SourceSection
    where: Sql | None = Field(default=None, description="A SQL condition on the row.")
    joins: list[JoinSection] = Field(default=[], description="Keyed topics that are looked up as tables.")
    select: dict[str, Sql] | None = Field(
        default=None, min_length=1, description="Per field of the sink's message: a SQL expression on the row."
    )
    explode: str | None = Field(
        default=None, description="Of a route: a repeated path; each of its elements gives a record."
    )
    group_by: str = Field(description="The path of the group; a repeated path puts a row into many groups.")
    window: WindowSection | None = None
    keep: Keep
    insert_only: bool = Field(
        default=False, description="Rows are never changed or deleted; an aggregate may then use min and max."
    )
    sink: SinkSection
    forget_deleted: Duration = Field(
        default=timedelta(days=7),
        description="How long the state remembers rows that are gone.",
        json_schema_extra={"default": "7d"},
    )
    trigger: TriggerSection = Field(default=TriggerSection(), json_schema_extra={"default": {}})
    dead_letters: DeadLettersSection = Field(default=DeadLettersSection(), json_schema_extra={"default": {}})


_KEYS: dict[str, type[Section]] = {
    "": PipelineFile,
    "source": SourceSection,
    "joins": JoinSection,
    "window": WindowSection,
    "keep": KeepSection,
    "keep.members": MembersSection,
    "keep.route": RouteSection,
    "sink": SinkSection,
    "trigger": TriggerSection,
    "dead_letters": DeadLettersSection,
}
_INDEX = re.compile(r"\[\d+\]")


def read(file: Path) -> PipelineFile:
    """The file's content. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineFileError(str(file), "", f"cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PipelineFileError(str(file), "", f"is not YAML: {one_line(str(error))}") from error
    if not isinstance(content, dict):
        raise PipelineFileError(str(file), "", "is not a pipeline: its top level must be keys and values")
    try:
        return PipelineFile.model_validate(content)
    except ValidationError as error:
        # A key that is missing is most often one that was misspelt.
        first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        key, problem = _explain(first)
        raise PipelineFileError(str(file), key, problem) from error


def _explain(error: Any) -> tuple[str, str]:
    key, parent = "", ""
    for part in error["loc"]:
        parent, key = key, f"{key}[{part}]" if isinstance(part, int) else f"{key}.{part}".removeprefix(".")
    if error["type"] == "extra_forbidden":
        section = _KEYS[_INDEX.sub("", parent)].model_fields.items()
        return key, f"unknown key; {hint(str(error['loc'][-1]), (field.alias or name for name, field in section))}"
    if error["type"] == "missing":
        return key, "is missing"
    if error["type"] == "literal_error":
        valid = [name.strip("'") for name in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        return key, f"{error['input']!r} is not supported; {hint(str(error['input']), valid)}"
    return key, f"{error['msg'].removeprefix('Value error, ')} (it is {error['input']!r})"
