"""Keys of other makers are named by their likely form."""

from uuid import UUID

import pytest

from statecast_service.key_forms import form_of_bytes, form_of_text

ID = UUID("6fa459ea-ee8a-3ca4-894e-db77e160355e")


@pytest.mark.parametrize(
    ("key", "form"),
    [
        ((42).to_bytes(8, "big"), "a number of 8 bytes, here 42"),
        ((-7).to_bytes(8, "big", signed=True), "a number of 8 bytes, here -7"),
        ((42).to_bytes(4, "big"), "a number of 4 bytes, here 42"),
        (ID.bytes, f"a UUID of 16 bytes, here {ID}"),
        (b"\0\0\0\0\x07\x06abc", "a schema registry's format, schema 7"),
        (b"a\0b", "text with NUL"),
        (b"\xff\xfeabc", "bytes that are not UTF-8"),
        (None, "there is no key"),
        (b"", "there is no key"),
    ],
)
def test_a_key_that_names_no_row_is_named_with_what_to_do(key: bytes | None, form: str) -> None:
    assert form in form_of_bytes(key)
    assert "write keys as UTF-8 text" in form_of_bytes(key)


@pytest.mark.parametrize(("key", "form"), [(b'"c-1"', "JSON texts"), (b'{"id":7}', "JSON objects")])
def test_a_key_of_json_is_named(key: bytes, form: str) -> None:
    assert form in (form_of_text(key) or "")
    assert form_of_text(b"c-1") is None
