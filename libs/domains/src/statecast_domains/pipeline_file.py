"""The form of a pipeline's YAML file: which keys there are and which go together, and the errors for wrong ones."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError
from pydantic_core import ErrorDetails

from statecast_domains import sections
from statecast_domains.errors import PipelineFileError
from statecast_domains.sections import Section, Sql
from statecast_service.settings import suggest
from statecast_service.yaml_files import read_yaml


class PipelineFile(Section):
    """One pipeline: from a topic of changes to a keyed topic, or to a plain one."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Names the checkpoint and the metrics.")
    source: sections.SourceSection
    where: Sql | None = Field(None, description="A SQL condition on the row.")
    joins: list[sections.JoinSection] = Field([], description="Keyed topics that are looked up as tables.")
    select: dict[str, Sql] | None = Field(
        None, min_length=1, description="Per field of the sink's message: a SQL expression on the row."
    )
    explode: str | None = Field(None, description="Of a route: a repeated path; each of its elements gives a record.")
    group_by: sections.Paths = Field(
        description="The path of the group; a repeated path puts a row into many. Of latest it may be a list, the key."
    )
    window: sections.WindowSection | None = None
    keep: sections.Keep
    insert_only: bool = Field(
        False, description="Rows are never changed or deleted; an aggregate may then use min and max."
    )
    sink: sections.SinkSection
    forget_deleted: sections.Duration = Field(
        "7d", validate_default=True, description="How long the state remembers rows that are gone."
    )
    trigger: sections.TriggerSection = Field({}, validate_default=True)
    dead_letters: sections.DeadLettersSection = Field({}, validate_default=True)


_SHAPES_WITH: dict[str, tuple[sections.Shape, ...]] = {
    "window": ("aggregate",),
    "insert_only": ("aggregate",),
    "explode": ("route",),
    "joins": ("latest", "members", "route"),
    "select": ("latest", "members", "route"),
    "forget_deleted": ("latest", "members", "aggregate"),
}
"""The shapes that have a use for a key."""
SCHEMA_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def read(file: Path) -> PipelineFile:
    """The file's content. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    try:
        content = read_yaml(file)
    except ValueError as error:
        raise PipelineFileError(str(file), "", str(error)) from error
    if not isinstance(content, dict):
        raise PipelineFileError(str(file), "", "is not a pipeline: its top level must be keys and values")
    try:
        return PipelineFile.model_validate(content)
    except ValidationError as error:
        # A key that is missing is most often one that was misspelt.
        key, problem = _explain(min(error.errors(), key=lambda each: each["type"] != "unknown_key"))
        raise PipelineFileError(str(file), key, problem) from error


def _explain(error: ErrorDetails) -> tuple[str, str]:
    context = error.get("ctx", {})
    parts = *error["loc"], *([context["key"]] if "key" in context else [])
    key = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).removeprefix(".")
    match error["type"]:
        case "unknown_key":
            return key, context["problem"]
        case "missing":
            return key, "is missing"
        case "literal_error":
            valid = [name.strip("'") for name in context["expected"].replace(" or ", ", ").split(", ")]
            return key, f"{error['input']!r} is not supported; {suggest(str(error['input']), valid)}"
    shown = error["input"] if not isinstance(error["input"], timedelta) else sections.human(error["input"])
    return key, f"{error['msg'].removeprefix('Value error, ')} (it is {shown!r})"


def misplaced(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    """The keys that have no meaning beside the others, or are missing beside them, each with what is wrong with it."""
    source, select, message = definition.source, definition.select, definition.sink.message
    shape = definition.keep.shape
    if source.epoch is not None and source.format != "debezium-json":
        yield "source.epoch", f"has no meaning in format {source.format}, whose changes carry their epoch"
    if shape == "route" and source.key is not None:
        yield "source.key", "has no meaning with keep: route, which remembers no rows"
    if shape == "aggregate" and source.key is None and source.format == "protobuf":
        yield "source.key", "is missing: an aggregate needs the row's primary key, to count each row once"
    yield from _of_other_shapes(definition)
    if shape == "aggregate" and message is None:
        yield "sink.message", "is missing: an aggregate needs a message whose fields it fills"
    if select is not None and message is None:
        yield "sink.message", "is missing: select fills its fields"
    if definition.joins and select is None:
        yield "select", "is missing: without it nothing of the joined tables is written"
    if definition.explode is not None and select is None:
        yield "select", "is missing: without it each element would give the same record"


def _of_other_shapes(definition: PipelineFile) -> Iterator[tuple[str, str]]:
    shape = definition.keep.shape
    for key, shapes in _SHAPES_WITH.items():
        if key in definition.model_fields_set and shape not in shapes:
            yield key, f"has no meaning with keep: {shape}; it goes with: {', '.join(shapes)}"
    if shape != "latest" and isinstance(definition.group_by, list):
        yield "group_by", f"is a list, which goes with keep: latest alone; {shape} takes one path"


def schema_text() -> str:
    """The schema as domains/pipeline.schema.json holds it."""
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
    options = [each for each in kept.pop("anyOf") if each != {"type": "null"}]
    del kept["default"]
    return {**(options[0] if len(options) == 1 else {"anyOf": options}), **kept}
