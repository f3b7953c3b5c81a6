"""Names the forms in which other programs write keys and values, so that a log line says what to change."""

import json
from collections.abc import Sequence
from threading import Lock
from uuid import UUID

import structlog

from query_service.storage.store_keys import DELETED, FLAGS_AT, HEADER_SIZE
from query_service.storage.stores_file import StoreDefinition

_MAX_CHECKED = 100
_AS_TEXT = "write keys as UTF-8 text"
_JSON_STARTS = b'{["-0123456789tfn \t\r\n'
_REGISTRY_HEAD = 5

_log = structlog.get_logger()


class Once:
    """Says of each thing whether it is the first time: for log lines that all replicas share. Any thread may call."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, ...]] = set()
        self._lock = Lock()

    def is_first(self, *thing: str) -> bool:
        with self._lock:
            size = len(self._seen)
            self._seen.add(thing)
            return len(self._seen) > size


class FormCheck:
    """Looks at about a hundred rows of each batch; tells once for each store of a form that readers may not expect."""

    def __init__(self, definition: StoreDefinition, once: Once) -> None:
        self._store, self._message, self._once = definition.name, definition.message, once

    def check(self, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
        """`values` are as they are stored."""
        for index in range(0, len(keys), max(1, len(keys) // _MAX_CHECKED)):
            key, value = keys[index], values[index]
            form = form_of_text(key)
            if form is not None:
                self._tell("keys", form, key)
            form = None if value[FLAGS_AT] & DELETED else form_of_value(self._message, value[HEADER_SIZE:])
            if form is not None:
                self._tell("values", form, key)

    def _tell(self, part: str, form: str, key: bytes) -> None:
        if self._once.is_first(self._store, part, form):
            _log.warning(f"{part} of a plain store are {form}", store=self._store, key=key.decode())


def form_of_bytes(key: bytes | None) -> str:
    """Returns what a key that names no row looks like, and what to do."""
    if not key:
        return f"there is no key, by which a row could be found: {_AS_TEXT}, or leave the topic to a pipeline"
    if key[0] == 0 and len(key) > _REGISTRY_HEAD and len(key) not in (8, 16):
        schema = int.from_bytes(key[1:_REGISTRY_HEAD], "big")
        form = f"a schema registry's format, schema {schema}"
    elif len(key) in (4, 8):
        form = f"a number of {len(key)} bytes, here {int.from_bytes(key, 'big', signed=True)}"
    elif len(key) == 16:
        form = f"a UUID of 16 bytes, here {UUID(bytes=key)}"
    elif 0 in key:
        form = "text with NUL, but not `group NUL sort NUL member`"
    else:
        form = "bytes that are not UTF-8"
    return f"the key {key[:40]!r} looks like {form}: {_AS_TEXT}"


def form_of_text(key: bytes) -> str | None:
    """Returns how the text of a key is written, where a reader may expect it without that; else None."""
    if key[:1] == b'"' and key[-1:] == b'"' and len(key) > 1:
        return "JSON texts: ask for them with their quotes, or write them with a StringSerializer"
    if key[:1] == b"{" and key[-1:] == b"}":
        return "JSON objects: ask for them by the whole text, or write the one field that names the row as text"
    return None


def form_of_value(message: str, value: bytes) -> str | None:
    """Returns what a value of a store with this message looks like, where it is none; else None."""
    if message == "bytes":
        return None
    if value[:1] == b"\0" and len(value) > _REGISTRY_HEAD:
        schema = int.from_bytes(value[1:_REGISTRY_HEAD], "big")
        return f"in a schema registry's format, schema {schema}, and not {message}: readers get them as base64"
    if message != "json" or (value[:1] in (b"{", b"[") and value[-1:] in (b"}", b"]")):
        return None
    if value[:1] and value[0] in _JSON_STARTS:
        try:
            json.loads(value)
        except ValueError:
            pass
        else:
            return None
    return "not JSON: readers get them as base64; say `message: bytes` in the stores file, or write JSON"
