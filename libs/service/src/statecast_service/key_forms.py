"""Names the forms in which other programs write the keys of records, so that a line can say the change to make."""

from uuid import UUID

_AS_TEXT = "write keys as UTF-8 text"
REGISTRY_HEAD = 5
"""Length in bytes of the head of a schema registry's format: a zero and the schema's id."""


def form_of_bytes(key: bytes | None) -> str:
    """Names the likely form of a key that names no row, and says how to change it."""
    if not key:
        return f"there is no key, by which a row could be found: {_AS_TEXT}, or leave the topic to a pipeline"
    if key[0] == 0 and len(key) > REGISTRY_HEAD and len(key) not in (8, 16):
        schema = int.from_bytes(key[1:REGISTRY_HEAD], "big")
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
    """Names the notation of a key's text when a reader may expect the text without it; else returns None."""
    if key[:1] == b'"' and key[-1:] == b'"' and len(key) > 1:
        return "JSON texts: ask for them with their quotes, or write them with a StringSerializer"
    if key[:1] == b"{" and key[-1:] == b"}":
        return "JSON objects: ask for them by the whole text, or write the one field that names the row as text"
    return None
