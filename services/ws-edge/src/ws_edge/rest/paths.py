"""Keys in paths: one may have a slash, which a caller encodes as %2F, and which parts nothing of a path."""

import re
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from pydantic import AfterValidator

from ws_edge.errors import MalformedFrameError

STAND_IN = "\0"
"""Stands for an encoded slash while a path is routed: no key can have this character."""
ENCODED_SLASH = re.compile(rb"%2f", re.IGNORECASE)

KeyPart = Annotated[str, AfterValidator(lambda part: part.replace(STAND_IN, "/"))]
"""A parameter of a path that is a part of a key."""


def routed_path(scope: Mapping[str, Any]) -> str:
    """Returns the decoded path of an ASGI scope, in which STAND_IN is in place of each encoded slash.

    Raises MalformedFrameError for a path with STAND_IN itself. The path must be UTF-8.
    """
    if STAND_IN in scope["path"]:
        raise MalformedFrameError("the path contains a NUL character, which no key can have")
    if ENCODED_SLASH.search(scope["raw_path"]) is None:
        return str(scope["path"])
    return unquote_to_bytes(ENCODED_SLASH.sub(STAND_IN.encode(), scope["raw_path"])).decode()
