"""Settings from environment variables: one frozen class per service, and one loader that finds all mistakes at once."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import BeforeValidator, Field, SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from statecast_service.errors import SettingsError

Port = Annotated[int, Field(ge=0, le=65_535)]
"""A port to listen on; 0 takes a free one."""

T = TypeVar("T")
MAX_COMPARED = 80
"""How many characters of a wrong name are compared: it may come from outside."""
MIN_LIKENESS = 0.45
"""How like a wrong name the nearest one must be: 1 for the same letters and pairs of letters, 0 for others."""


class ServiceSettings(BaseSettings):
    """Base of the settings of every service. A field's variable is the prefix and the field's name in capitals.

    A service sets `model_config = SettingsConfigDict(env_prefix="WS_EDGE_")`. An empty variable counts as unset.
    Rules over several fields are `model_validator`s that raise ValueError and name the variables.
    """

    model_config = SettingsConfigDict(frozen=True, extra="forbid", env_ignore_empty=True, hide_input_in_errors=True)

    @classmethod
    def prefix(cls) -> str:
        return cls.model_config.get("env_prefix", "")

    @classmethod
    def variable(cls, field: str) -> str:
        shared = cls.model_fields[field].validation_alias if field in cls.model_fields else None
        return shared if isinstance(shared, str) else f"{cls.prefix()}{field.upper()}"


class DescriptorSettings(ServiceSettings):
    """The one variable that has the same name for all services."""

    model_config = SettingsConfigDict(populate_by_name=True)

    descriptors: Annotated[Path | None, BeforeValidator(lambda value: value or None)] = Field(
        default=None,
        validation_alias="STATECAST_DESCRIPTORS",
        description="A directory of `.proto` files and descriptor sets (`.binpb`): messages beside the contract's.",
    )

    def with_descriptors(self, read: Callable[[Path | None], T]) -> T:
        """Returns `read(directory)`. Turns its ValueError into a SettingsError that names the variable."""
        try:
            return read(self.descriptors)
        except ValueError as error:
            raise SettingsError(f"{self.variable('descriptors')}: {error}") from error


S = TypeVar("S", bound=ServiceSettings)


def load_settings(cls: type[S], **overrides: object) -> S:
    """Reads the environment; an override that is not None takes precedence.

    Raises SettingsError with one line that names every wrong variable, every unknown one with the prefix and the valid
    name that is nearest to it. The values of secrets are not in it.
    """
    overrides = {name: value for name, value in overrides.items() if value is not None}
    environment = {name.upper(): value for name, value in os.environ.items()}
    complaints = list(_unknown_variables(cls, environment))
    try:
        settings = cls(**overrides)
    except ValidationError as error:
        values = {**{name: environment.get(cls.variable(name)) for name in cls.model_fields}, **overrides}
        complaints += [_complaint(cls, details, values) for details in error.errors()]
    if complaints:
        # Outside of the handler, because a traceback would show the inputs of the validation, secrets among them.
        raise SettingsError("; ".join(complaints))
    return settings


def describe_settings(cls: type[ServiceSettings]) -> str:
    """Returns a paragraph for each variable, for `--help`."""
    return "\n".join(
        f"  {cls.variable(name)} [{shown_default(field)}]\n      {field.description}"
        for name, field in cls.model_fields.items()
    )


def shown_default(field: FieldInfo) -> str:
    """Returns the default of a field for people; of an absolute path only the end, which is the same on any machine."""
    default = field.get_default(call_default_factory=True, validated_data={})
    if field.is_required():
        return "required"
    if default is None or _is_secret(field.annotation):
        return ""
    if isinstance(default, Path) and default.is_absolute():
        return f"…/{default.name}"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return f"{default:g}" if isinstance(default, float) and default < 1_000_000 else str(default)


def nearest(wrong: str, valid: Iterable[str]) -> str | None:
    """Returns the valid name that is most like the wrong one; None when none is near.

    Names are compared by their sets of letters, because services do so for each wrong name of a client: difflib would
    take a millisecond for twenty names.
    """
    own = _letters(wrong[:MAX_COMPARED])
    names = ((_likeness(own, letters), name) for name, letters in _letters_of(tuple(valid)))
    likeness, name = max(names, default=(0.0, ""))
    return name if likeness >= MIN_LIKENESS else None


def suggest(wrong: str, valid: Iterable[str]) -> str:
    """Returns the end of an error's text: the nearest valid name, or all of them when none is near."""
    names = sorted(valid)
    match = nearest(wrong, names)
    return f"did you mean {match}?" if match else f"one of: {', '.join(names) or 'none'}"


def _letters(name: str) -> frozenset[str]:
    """Returns the letters of a name, and the pairs of neighbours among them."""
    return frozenset((*name, *map("".join, pairwise(name))))


@lru_cache(maxsize=256)
def _letters_of(names: tuple[str, ...]) -> list[tuple[str, frozenset[str]]]:
    return [(name, _letters(name)) for name in names]


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other) or 1)


def _unknown_variables(cls: type[ServiceSettings], environment: Mapping[str, str]) -> Iterator[str]:
    fields = {name.upper(): cls.variable(name) for name in cls.model_fields}
    for variable in sorted(environment):
        name = variable.removeprefix(cls.prefix())
        if variable.startswith(cls.prefix()) and variable not in fields.values() and environment[variable]:
            match = nearest(name, fields)
            yield f"{variable}: there is no such variable" + (f"; did you mean {fields[match]}?" if match else "")


def _complaint(cls: type[ServiceSettings], details: ErrorDetails, values: Mapping[str, Any]) -> str:
    message = details["msg"].removeprefix("Value error, ")
    if not details["loc"]:
        return message
    at = str(details["loc"][0])
    name = next((field for field in cls.model_fields if cls.variable(field) == at), at)
    if details["type"] == "missing":
        return f"{cls.variable(name)}: it must be set"
    field = cls.model_fields.get(name)
    if field is None or _is_secret(field.annotation):
        return f"{cls.variable(name)}: {message}"
    value = details["input"] if values.get(name) is None else values[name]
    return f"{cls.variable(name)}={value!r}: {message}"


def _is_secret(annotation: object) -> bool:
    return annotation in (SecretStr, SecretBytes) or any(map(_is_secret, get_args(annotation)))
