"""The script that decides about requests."""

import ssl
from pathlib import Path
from typing import Any

import pytest

from kong_envoy import render
from kong_envoy.document import read_document
from kong_envoy.gateway_under_test import GatewayUnderTest, running_envoy, running_upstreams
from kong_envoy.script import literal, script_of
from local_stack.ports import free_ports


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
    script = script_of(read_document(document, environment, tls=False))

    assert "alice-demo-issuer" in script
    assert "alice-demo-secret" not in script


def test_a_script_that_fails_lets_nobody_in(
    document: dict[str, Any], environment: dict[str, str], tmp_path: Path
) -> None:
    first, second, http, admin = free_ports(4)
    addresses = {"ws-edge-1:8080": f"127.0.0.1:{first}", "ws-edge-2:8080": f"127.0.0.1:{second}"}
    config = render(
        document,
        listen_http=f"127.0.0.1:{http}",
        admin=f"127.0.0.1:{admin}",
        resolve=addresses,
        environment=environment,
    )
    _script_in(config)["inline_string"] += "\nidentify = nil\nfunction tonumber() error('broken') end"
    with running_upstreams(list(addresses.values())) as upstreams, running_envoy(config, tmp_path) as log:
        base = f"http://127.0.0.1:{http}"
        gateway = GatewayUnderTest(base, "", ssl.create_default_context(), "", upstreams)
        answer = gateway.get("/v1/x", {"apikey": "alice-demo-key"})

        assert answer.status_code == 500
        assert answer.json()["message"] == "An unexpected error occurred"
        assert "the script failed" in log.read_text()


def _script_in(config: dict[str, Any]) -> dict[str, str]:
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    script = next(each for each in manager["http_filters"] if each["name"] == "envoy.filters.http.lua")
    source: dict[str, str] = script["typed_config"]["default_source_code"]
    return source
