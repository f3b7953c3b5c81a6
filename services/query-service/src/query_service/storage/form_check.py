"""Tells once for each store that its keys or values are written in another form than readers may expect."""

import json
from collections.abc import Sequence

import structlog

from query_service.logged import Logged
from query_service.storage.store_keys import DELETED, FLAGS_AT, HEADER_SIZE
from query_service.storage.stores_file import StoreDefinition
from statecast_service.key_forms import REGISTRY_HEAD, form_of_text

_MAX_CHECKED = 100
_JSON_STARTS = b'{["-0123456789tfn \t\r\n'

_log = structlog.get_logger()


class FormCheck:
    """Looks at about a hundred rows of each batch; tells of the first key and the first value of each store alone.

    A topic of arbitrary bytes has as many forms as values.
    """

    def __init__(self, definition: StoreDefinition, logged: Logged) -> None:
        self._store, self._message, self._logged = definition.name, definition.message, logged

    def check(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """Reports keys and values of another known form; `values` are in their stored form."""
        for index in range(0, len(keys), max(1, len(keys) // _MAX_CHECKED)):
            key, value = keys[index], values[index]
            form = form_of_text(key)
            if form is not None:
                self._tell("keys", form, key)
            form = None if value[FLAGS_AT] & DELETED else form_of_value(self._message, value[HEADER_SIZE:])
            if form is not None:
                self._tell("values", form, key)

    def _tell(self, part: str, form: str, key: bytes) -> None:
        if self._logged.is_new((self._store, part)):
            _log.warning(f"{part} of a plain store are {form}", store=self._store, key=key.decode())


def form_of_value(message: str, value: bytes) -> str | None:
    """Names the known form of a value that is not of this message, with the remedy; else None."""
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
