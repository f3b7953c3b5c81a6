"""Names the forms in which other programs write values, so that a log line gives the remedy."""

import json

from statecast_service.key_forms import REGISTRY_HEAD

_JSON_STARTS = b'{["-0123456789tfn \t\r\n'


def form_of_value(message: str, value: bytes) -> str | None:
    """Names the known form of a value that is not of this message; else None."""
    if message == "bytes":
        return None
    if value[:1] == b"\0" and len(value) > REGISTRY_HEAD:
        schema = int.from_bytes(value[1:REGISTRY_HEAD], "big")
        return f"in a schema registry's format, schema {schema}, and not {message}: readers get them as base64"
    if message != "json" or (value[:1] in (b"{", b"[") and value[-1:] in (b"}", b"]")):
        return None
    if value[:1] and value[0] in _JSON_STARTS:
        try:
            json.loads(value)
        except (ValueError, RecursionError):
            pass
        else:
            return None
    return "not JSON: readers get them as base64; say `message: bytes` in the stores file, or write JSON"
