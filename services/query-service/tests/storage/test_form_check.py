"""Keys and values of other makers are named by the form that they seem to have."""

import pytest
from structlog.testing import capture_logs

from query_service.logged import Logged
from query_service.storage.form_check import FormCheck, form_of_value
from query_service.storage.store_keys import DELETED, HEADER
from testkit.query_service import store_definition


@pytest.mark.parametrize("value", [b'{"a": 1}', b"[]", b"1", b' {"a": 1} ', b'"x"', b"null"])
def test_json_is_what_a_store_of_json_expects(value: bytes) -> None:
    assert form_of_value("json", value) is None


@pytest.mark.parametrize(
    ("message", "value", "form"),
    [
        ("json", b"\0\0\0\0\x07{}", "a schema registry's format, schema 7"),
        ("acme.v1.Order", b"\0\0\0\0\x07\x00\x08", "a schema registry's format, schema 7"),
        ("json", b"paid", "not JSON"),
        ("json", b"", "not JSON"),
        ("json", b"{'a': 1", "not JSON"),
        ("json", b"[" * 100_000, "not JSON"),
    ],
)
def test_a_value_of_another_form_is_named(message: str, value: bytes, form: str) -> None:
    assert form in (form_of_value(message, value) or "")
    assert form_of_value("bytes", value) is None


def test_each_form_is_told_once_for_a_store() -> None:
    logged, definition = Logged(), store_definition("rows", message="json", format="plain")
    row, deletion = HEADER.pack(0, 1, 1, 0, 0, 0) + b"paid", HEADER.pack(0, 1, 1, 0, 0, DELETED)
    with capture_logs() as logs:
        for _ in range(2):
            FormCheck(definition, logged).check([b'"a"', b"b"], [row, deletion])

    assert [log["event"].partition(":")[0] for log in logs] == [
        "keys of a plain store are JSON texts",
        "values of a plain store are not JSON",
    ]


def test_values_that_all_look_different_do_not_fill_the_log() -> None:
    definition = store_definition("rows", message="acme.v1.Order", format="plain")
    head = HEADER.pack(0, 1, 1, 0, 0, 0) + b"\0"
    values = [head + number.to_bytes(4, "big") + b"rest" for number in range(100)]
    with capture_logs() as logs:
        FormCheck(definition, Logged()).check([b"key"] * len(values), values)

    assert len(logs) == 1
