"""The form of a pipeline's YAML file: which keys there are, and what their values look like."""

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from stream_processor.duration import CheckpointInterval, Duration
from stream_processor.errors import PipelineFileError
from stream_processor.nearest import hint

TopicName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9._-]{1,249}$")]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class SourceSection(_Section):
    """Where changes come from."""

    topic: TopicName
    message: str = Field(description="The full name of the change message, with operation, source, before and after.")
    format: Literal["protobuf"] = "protobuf"


class MembersSection(_Section):
    """What makes a row a member of its group."""

    key: str = Field(description="The path of the member's key within the group.")
    sort: str = Field(description="The path of the value by which a group's members are ordered.")


class KeepSection(_Section):
    """What a group keeps: the newest row (`keep: latest`) or a row per member (`keep: {members: {key, sort}}`)."""

    members: MembersSection | None = None


class SinkSection(_Section):
    """Where records go."""

    topic: TopicName


class TriggerSection(_Section):
    """How Spark runs the query."""

    mode: Literal["realtime", "micro-batch"] = "realtime"
    checkpoint: CheckpointInterval = Field(default=timedelta(seconds=60), description="Of real-time mode.")
    interval: Duration = Field(default=timedelta(seconds=1), description="Of micro-batch mode.")

    @model_validator(mode="after")
    def _fits_the_mode(self) -> "TriggerSection":
        foreign = "interval" if self.mode == "realtime" else "checkpoint"
        if foreign in self.model_fields_set:
            raise ValueError(f"{foreign} has no meaning in mode {self.mode}")
        return self


class DeadLettersSection(_Section):
    """How many records may be set aside before the pipeline stops."""

    limit: int = Field(default=1000, ge=0)


def _keep(value: object) -> object:
    kinds = ("latest", "members")
    given = value if isinstance(value, str) else next(iter(value), "") if isinstance(value, dict) else str(value)
    if given not in kinds:
        later = ("aggregate", "route")
        raise ValueError(
            f"{given!r} is not supported {'yet' if given in later else 'here'}; "
            f"{hint(given, kinds) if given not in later else 'one of: ' + ', '.join(kinds)}"
        )
    if value == "members":
        raise ValueError("members needs its paths: {members: {key: ..., sort: ...}}")
    return {} if value == "latest" else value


def _one_line(text: str) -> str:
    return " ".join(text.split())


class PipelineFile(_Section):
    """One pipeline: from a topic of changes to a keyed topic."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="Names the checkpoint and the metrics.")
    source: SourceSection
    where: Annotated[str, AfterValidator(_one_line)] | None = Field(
        default=None, description="A SQL condition on the row."
    )
    group_by: str = Field(description="The path of the group; a repeated path puts a row into many groups.")
    keep: Annotated[KeepSection, BeforeValidator(_keep)]
    sink: SinkSection
    trigger: TriggerSection = TriggerSection()
    dead_letters: DeadLettersSection = DeadLettersSection()


_KEYS: dict[str, type[_Section]] = {
    "": PipelineFile,
    "source": SourceSection,
    "keep": KeepSection,
    "keep.members": MembersSection,
    "sink": SinkSection,
    "trigger": TriggerSection,
    "dead_letters": DeadLettersSection,
}


def read(file: Path) -> PipelineFile:
    """The file's content. Raises PipelineFileError naming the file, the key and the nearest valid name."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipelineFileError(str(file), "", f"cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise PipelineFileError(str(file), "", f"is not YAML: {_one_line(str(error))}") from error
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
    place = [str(part) for part in error["loc"]]
    key = ".".join(place)
    if error["type"] == "extra_forbidden":
        return key, f"unknown key; {hint(place[-1], _KEYS['.'.join(place[:-1])].model_fields)}"
    if error["type"] == "missing":
        return key, "is missing"
    if error["type"] == "literal_error":
        valid = [name.strip("'") for name in error["ctx"]["expected"].replace(" or ", ", ").split(", ")]
        return key, f"{error['input']!r} is not supported; {hint(str(error['input']), valid)}"
    return key, f"{error['msg'].removeprefix('Value error, ')} (it is {error['input']!r})"
