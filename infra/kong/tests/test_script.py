"""The script that decides about requests."""

from pathlib import Path
from typing import Any

import pytest

from kong_envoy.gateway import read_document
from kong_envoy.script import literal, script_of
from testkit.gateway_under_test import running_gateway
from testkit.ports import free_ports


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (5, "5"),
        ("a", '"a"'),
        ('a"b\\c\n', '"a\\034b\\092c\\010"'),
        ("ü", '"\\195\\188"'),
        (["a", 1], '{ "a", 1 }'),
        ({"a": None, "b": [False]}, '{ ["b"] = { false } }'),
    ],
)
def test_values_have_their_form_in_lua(value: object, text: str) -> None:
    assert literal(value) == text


def test_what_has_no_form_in_lua_is_refused() -> None:
    with pytest.raises(TypeError, match="has no form in Lua"):
        literal(object())


def test_the_secrets_of_tokens_are_not_in_the_script(document: dict[str, Any], environment: dict[str, str]) -> None:
    script = script_of(read_document(document, environment))

    assert "alice-demo-issuer" in script
    assert "alice-demo-secret" not in script


def test_a_script_that_fails_lets_nobody_in(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    broken = "\nfunction tonumber() error('broken') end"
    with running_gateway(document, environment, tmp_path, free_ports(5), more_script=broken) as (gateway, log):
        answer = gateway.get("/v1/x", {"apikey": "alice-demo-key"})

        assert answer.status_code == 500
        assert answer.json()["message"] == "An unexpected error occurred"
        assert "the script failed" in log.read_text()
