"""The form of a pipeline's YAML file: which keys there are and which go together, and the errors for wrong ones."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from statecast_service.settings import suggest
from stream_processor.definition import sections
from stream_processor.errors import PipelineFileError


class PipelineFile(sections.Section):
    """One pipeline: from a topic of changes to a keyed topic, or to a plain one."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Names the checkpoint and the metrics.")
    source: sections.SourceSection
    where: sections.Sql | None = Field(default=None, description="A SQL condition on the row.")
    joins: list[sections.JoinSection] = Field(default=[], description="Keyed topics that are looked up as tables.")
    select: dict[str, sections.Sql] | None = Field(
        default=None, min_length=1, description="Per field of the sink's message: a SQL expression on the row."
    )
    explode: str | None = Field(
        default=None, description="Of a route: a repeated path; each of its elements gives a record."
    )
    group_by: str = Field(description="The path of the group; a repeated path puts a row into many groups.")
    window: sections.WindowSection | None = None
    keep: sections.Keep
    insert_only: bool = Field(
        default=False, description="Rows are never changed or deleted; an aggregate may then use min and max."
    )
    sink: sections.SinkSection
    forget_deleted: sections.Duration = sections.duration_field(
        "7d", "How long the state remembers rows that are gone."
    )
    trigger: sections.TriggerSection = Field(default=sections.TriggerSection(), json_schema_extra={"default": {}})
    dead_letters: sections.DeadLettersSection = Field(
        default=sections.DeadLettersSection(), json_schema_extra={"default": {}}
    )


_KEYS: dict[str, type[sections.Section]] = {
    "": PipelineFile,
    "source": sections.SourceSection,
    "joins": sections.JoinSection,
    "window": sections.WindowSection,
    "keep": sections.KeepSection,
    "keep.members": sections.MembersSection,
    "keep.route": sections.RouteSection,
    "sink": sections.SinkSection,
    "trigger": sections.TriggerSection,
    "dead_letters": sections.DeadLettersSection,
}
_SHAPES_WITH: dict[str, tuple[sections.Shape, ...]] = {
    "window": ("aggregate",),
    "insert_only": ("aggregate",),
    "explode": ("route",),
    "joins": ("latest", "members", "route"),
    "select": ("latest", "members", "route"),
    "forget_deleted": ("latest", "members", "aggregate"),
}
"""The shapes that have a use for a key."""
Misplaced = tuple[str, str]
"""A key, and what is wrong with it."""
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_INDEX = re.compile(r"\[\d+\]")


def read(file: Path) -> PipelineFile:
    """The file's content. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineFileError(str(file), "", f"cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PipelineFileError(str(file), "", f"is not YAML: {sections.one_line(str(error))}") from error
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
        return key, f"unknown key; {suggest(str(error['loc'][-1]), (field.alias or name for name, field in section))}"
    if error["type"] == "missing":
        return key, "is missing"
    if error["type"] == "literal_error":
        valid = [name.strip("'") for name in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        return key, f"{error['input']!r} is not supported; {suggest(str(error['input']), valid)}"
    return key, f"{error['msg'].removeprefix('Value error, ')} (it is {error['input']!r})"


def first_misplaced(definition: PipelineFile) -> Misplaced | None:
    """The first key that has no meaning beside the others, or is missing beside them: (key, problem)."""
    return next(_misplaced(definition), None)


def _misplaced(definition: PipelineFile) -> Iterator[Misplaced]:
    source, shape, select, message = (
        definition.source,
        definition.keep.shape,
        definition.select,
        definition.sink.message,
    )
    if source.epoch is not None and source.format != "debezium-json":
        yield "source.epoch", f"has no meaning in format {source.format}, whose changes carry their epoch"
    if shape == "route" and source.key is not None:
        yield "source.key", "has no meaning with keep: route, which remembers no rows"
    if shape == "aggregate" and source.key is None:
        yield "source.key", "is missing: an aggregate needs the row's primary key, to count each row once"
    for key, shapes in _SHAPES_WITH.items():
        if key in definition.model_fields_set and shape not in shapes:
            yield key, f"has no meaning with keep: {shape}; it goes with: {', '.join(shapes)}"
    if shape == "aggregate" and message is None:
        yield "sink.message", "is missing: an aggregate needs a message whose fields it fills"
    if select is not None and message is None:
        yield "sink.message", "is missing: select fills its fields"
    if definition.joins and select is None:
        yield "select", "is missing: without it nothing of the joined tables is written"
    if definition.explode is not None and select is None:
        yield "select", "is missing: without it each element would give the same record"


def schema_text() -> str:
    """The schema as pipelines/pipeline.schema.json holds it."""
    schema = {key: _plain(value) for key, value in PipelineFile.model_json_schema().items()}
    whole = {"$schema": SCHEMA_DIALECT, **schema, "title": "A pipeline of the stream-processor"}
    return json.dumps(whole, indent=2) + "\n"


def _plain(node: Any) -> Any:
    """Without what pydantic adds and no person would write: titles, and null for what is left out."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    if {"type": "null"} not in kept.get("anyOf", []):
        return kept
    [option] = [each for each in kept.pop("anyOf") if each != {"type": "null"}]
    del kept["default"]
    return {**option, **kept}
