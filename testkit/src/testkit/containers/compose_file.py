"""Reads compose.yaml: the part of the format that this project's file uses; any other field is an error."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

VARIABLE = re.compile(r"\$(?:\$|\{(\w+)(?::([-?])([^}]*))?\})")
"""`$$`, `${NAME}`, `${NAME:-default}` or `${NAME:?what to do}`."""


class ComposeFileError(Exception):
    """A variable that the file needs is not set; the text is the file's own."""


def _seconds(duration: str) -> int:
    return int(duration.removesuffix("s"))


Seconds = Annotated[int, BeforeValidator(_seconds)]
"""A duration such as `30s`; other units are refused."""


def _words(command: object) -> object:
    return tuple(shlex.split(command)) if isinstance(command, str) else command


Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
"""A list of words, or a text that is split into them as a shell does."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Build(_Strict):
    """How an image is built; paths are as in the file, relative to its directory and to `context`."""

    context: str
    dockerfile: str
    args: dict[str, str] = {}


class HealthCheck(_Strict):
    """A command in the container that succeeds once it is healthy, and how long it may take until then."""

    test: tuple[str, ...]
    interval: Seconds
    timeout: Seconds
    start_period: Seconds
    retries: int

    @property
    def command(self) -> tuple[str, ...]:
        """Without the word CMD before it; the other forms are not in use."""
        assert self.test[0] == "CMD", self.test
        return self.test[1:]

    @property
    def patience_s(self) -> int:
        """After so many seconds a container that is still not healthy has failed."""
        return self.start_period + self.retries * (self.interval + self.timeout)


class Dependency(_Strict):
    """A wait for another container."""

    condition: Literal["service_completed_successfully", "service_healthy"]


class Network(_Strict):
    """The aliases of a container on the stack's network beside its own name; several may share one."""

    aliases: tuple[str, ...]


class Container(_Strict):
    """One of the file's services."""

    image: str
    build: Build | None = None
    user: str | None = None
    entrypoint: Words = ()
    command: Words = ()
    environment: dict[str, str] = {}
    volumes: tuple[str, ...] = ()
    ports: tuple[str, ...] = ()
    networks: dict[Literal["default"], Network] = {}
    depends_on: dict[str, Dependency] = {}
    healthcheck: HealthCheck | None = None
    sysctls: dict[str, str] = {}
    stop_grace_period: Seconds = 10
    stop_signal: str | None = None
    restart: str = "no"
    read_only: bool = False
    tmpfs: tuple[str, ...] = ()
    cap_drop: tuple[str, ...] = ()
    security_opt: tuple[str, ...] = ()
    profiles: tuple[str, ...] = ()


class ComposeFile(_Strict):
    """The file; its extension fields (`x-…`) are only there to be merged into services."""

    name: str
    services: dict[str, Container]
    volumes: dict[str, dict[str, str]] = Field(default={})


def read_compose_file(file: Path, variables: Mapping[str, str]) -> ComposeFile:
    """Reads the file with its variables filled in, without containers that have a profile.

    Raises ComposeFileError for a variable that is needed and not set, pydantic's ValidationError for a field that is
    not known here.
    """
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    fields = {name: value for name, value in document.items() if not name.startswith("x-")}
    compose = ComposeFile.model_validate(_filled_in(fields, variables))
    always = {name: container for name, container in compose.services.items() if not container.profiles}
    return compose.model_copy(update={"services": always})


def _filled_in(value: Any, variables: Mapping[str, str]) -> Any:
    """Returns the value with the variables in all its texts replaced."""
    if isinstance(value, dict):
        return {name: _filled_in(each, variables) for name, each in value.items()}
    if isinstance(value, list):
        return [_filled_in(each, variables) for each in value]
    return VARIABLE.sub(lambda match: _replacement(match, variables), value) if isinstance(value, str) else value


def _replacement(match: re.Match[str], variables: Mapping[str, str]) -> str:
    name, operator, text = match.groups()
    if name is None:
        return "$"
    if value := variables.get(name):
        return value
    if operator == "?":
        raise ComposeFileError(f"{name} is not set: {text}")
    return text or ""
