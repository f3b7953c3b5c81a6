"""Types of the fields in Kong's declarative file. An entity refuses every field that it does not declare."""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

EXACT_PATH = re.compile(r"~(/(?:[A-Za-z0-9_/-]|\\.)*)\$")
"""The one form of regular expression that is carried over: a path from its beginning to its end."""
ORIGIN = re.compile(r"(?P<scheme>https?)://[a-z0-9.-]+(:(?P<port>[0-9]{1,5}))?")
DEFAULT_PORTS = ("http", "80"), ("https", "443")


def only(*allowed: object) -> AfterValidator:
    """Refuses other values; the order within a list does not count, so lists are given sorted."""

    def check(value: object) -> object:
        if (sorted(value) if isinstance(value, list) else value) not in allowed:
            raise ValueError(f"only {' or '.join(map(repr, allowed))} is carried over")
        return value

    return AfterValidator(check)


def check_unique(what: str, names: Iterable[str]) -> None:
    """Raises ValueError that names the first duplicate."""
    seen = set[str]()
    for name in names:
        if name in seen:
            raise ValueError(f"{what} {name!r} is there twice")
        seen.add(name)


def not_host(name: str) -> str:
    """Returns the name of a request's header; raises ValueError for Host."""
    if name.lower() == "host":
        raise ValueError("Host is not carried over: Kong leaves it alone here")
    return name


def _path(path: str) -> str:
    if not path.startswith("/") and EXACT_PATH.fullmatch(path) is None:
        raise ValueError("only prefixes and ~EXACT$ are carried over")
    return path


def _origin(origin: str) -> str:
    """Kong reads other characters as a regular expression, and leaves out a default port, as browsers do."""
    named = ORIGIN.fullmatch(origin)
    if named is None or (named["scheme"], named["port"]) in DEFAULT_PORTS:
        raise ValueError("only origins as browsers send them are carried over, for example https://app.example.org")
    return origin


Text = Annotated[str, Field(min_length=1)]
Texts = list[Text]
Off = Annotated[bool, only(False)]
On = Annotated[bool, only(True)]
Zero = Annotated[int, only(0)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 2)]
Seconds = Annotated[int, Field(ge=1, le=65_535)]
Checks = Annotated[int, Field(ge=1, le=255)]
Path = Annotated[Text, AfterValidator(_path)]
Origin = Annotated[Text, AfterValidator(_origin)]
HeaderName = Annotated[Text, AfterValidator(not_host)]
HeaderContains = Annotated[Text, Field(pattern=r"^~\*[a-z]+$")]
"""The one form of regular expression that is carried over: a word in small letters, however it is spelled."""


class Entity(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Tagged(Entity):
    tags: Texts | None = None
