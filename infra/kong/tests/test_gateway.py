"""The file as a whole: anything that cannot be carried over exactly is refused by name."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kong_envoy.errors import KongEnvoyError, UnsupportedError
from kong_envoy.gateway import load, read_document
from kong_envoy.plugins import RateLimiting
from kong_envoy.rendering import render

Document = dict[str, Any]


def mappings(value: object, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where in a document there is a mapping."""
    if isinstance(value, dict):
        yield place
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in pairs:
        yield from mappings(each, (*place, key))


def at(document: Document, place: tuple[str | int, ...]) -> Any:
    value: Any = document
    for key in place:
        value = value[key]
    return value


def plugin(document: Document, name: str) -> Document:
    plugins: list[Document] = document["services"][0]["plugins"]
    return next(each for each in plugins if each["name"] == name)


def test_the_shipped_file_is_carried_over(document: Document, environment: dict[str, str]) -> None:
    gateway = read_document(document, environment)

    assert {route.name for _, route in gateway.routes} == {
        "orders",
        "stores",
        "passwords",
        "operations-passwords",
        "operations",
        "documentation",
        "pages",
        "tickets",
        "lookups",
    }
    assert len(gateway.certificates) == 1


def test_every_consumer_with_a_credential_has_what_the_edge_requires(
    document: Document, environment: dict[str, str]
) -> None:
    for consumer in read_document(document, environment).consumers:
        if consumer.basicauth_credentials or consumer.keyauth_credentials or consumer.jwt_secrets:
            assert consumer.custom_id, consumer.username
            assert consumer.acls, consumer.username


def test_passwords_are_taken_where_they_are_limited_by_address_alone(
    document: Document, environment: dict[str, str]
) -> None:
    gateway = read_document(document, environment)
    for service, route in gateway.routes:
        plugins = service.plugins_of(route)
        limit = plugins["rate-limiting"].config
        if "basic-auth" in plugins:
            assert isinstance(limit, RateLimiting)
            assert limit.limit_by == "ip"
    assert not [each.username for each in gateway.consumers if each.basicauth_credentials and each.plugins]


def test_an_unknown_field_is_refused_wherever_it_stands(document: Document, environment: dict[str, str]) -> None:
    places = list(mappings(document))
    for place in places:
        mapping = at(document, place)
        mapping["surprise"] = 1
        with pytest.raises(UnsupportedError, match=r"surprise"):
            read_document(document, environment)
        del mapping["surprise"]

    assert len(places) > 50
    read_document(document, environment)


OTHER_FIELDS = [
    ("jwt", "cookie_names", ["jwt"]),
    ("jwt", "key_claim_name", "kid"),
    ("jwt", "claims_to_verify", ["exp", "nbf"]),
    ("jwt", "secret_is_base64", True),
    ("jwt", "maximum_expiration", 60),
    ("jwt", "run_on_preflight", False),
    ("jwt", "realm", "x"),
    ("jwt", "uri_param_names", ["jwt"]),
    ("jwt", "header_names", ["x-token"]),
    ("key-auth", "key_in_query", True),
    ("key-auth", "key_in_header", False),
    ("key-auth", "hide_credentials", True),
    ("key-auth", "key_in_body", True),
    ("key-auth", "run_on_preflight", False),
    ("key-auth", "realm", "x"),
    ("acl", "deny", ["x"]),
    ("acl", "always_use_authenticated_groups", True),
    ("rate-limiting", "month", 1),
    ("rate-limiting", "policy", "redis"),
    ("rate-limiting", "limit_by", "header"),
    ("rate-limiting", "path", "/x"),
    ("rate-limiting", "sync_rate", 1),
    ("request-size-limiting", "require_content_length", True),
    ("request-size-limiting", "size_unit", "megabytes"),
    ("correlation-id", "generator", "uuid#counter"),
    ("request-transformer", "http_method", "GET"),
    ("request-transformer", "rename", {"headers": ["a:b"]}),
    ("request-transformer", "replace", {"headers": ["a:b"]}),
    ("request-transformer", "append", {"headers": ["a:b"]}),
    ("request-transformer", "remove", {"body": ["a"]}),
    ("request-transformer", "remove", {"querystring": ["a"]}),
    ("request-transformer", "remove", {"headers": ["host"]}),
    ("request-transformer", "add", {"querystring": ["a:b"]}),
    ("request-transformer", "add", {"headers": ["no value"]}),
    ("request-transformer", "add", {"headers": ["X-A:$(shared.authenticated_jwt_token)"]}),
]


@pytest.mark.parametrize(("name", "field", "value"), OTHER_FIELDS)
def test_a_value_of_a_plugin_that_would_mean_something_else_is_refused(
    document: Document, environment: dict[str, str], name: str, field: str, value: object
) -> None:
    plugin(document, name)["config"][field] = value

    with pytest.raises(UnsupportedError, match=rf"services\[0\]\.plugins\[\d\]\({name}\)"):
        read_document(document, environment)


OF_ALL_ROUTES = [
    ("cors", "origins", []),
    ("cors", "origins", ["*"]),
    ("cors", "origins", [r".*\.example\.org"]),
    ("cors", "origins", ["app.example.org"]),
    ("cors", "origins", ["https://App.example.org"]),
    ("cors", "origins", ["https://app.example.org/"]),
    ("cors", "origins", ["https://app.example.org:443"]),
    ("cors", "origins", ["http://app.example.org:80"]),
    ("cors", "headers", []),
    ("cors", "methods", []),
    ("cors", "methods", ["get"]),
    ("cors", "max_age", 0.5),
    ("cors", "max_age", -1),
    ("cors", "credentials", "true"),
    ("cors", "preflight_continue", True),
    ("cors", "private_network", True),
    ("cors", "allow_origin_absent", True),
    ("response-transformer", "rename", {"headers": ["a:b"]}),
    ("response-transformer", "replace", {"headers": ["a:b"]}),
    ("response-transformer", "append", {"headers": ["a:b"]}),
    ("response-transformer", "remove", {"json": ["a"]}),
    ("response-transformer", "remove", {"headers": ["Content-Length"]}),
    ("response-transformer", "remove", {"headers": ["x-kong-request-id"]}),
    ("response-transformer", "add", {"json": ["a:b"]}),
    ("response-transformer", "add", {"headers": ["no value"]}),
    ("response-transformer", "add", {"headers": ["Connection:close"]}),
    ("response-transformer", "add", {"headers": ["X-A:$(headers.x)"]}),
    ("response-transformer", "add", {"headers": ["X-A:{vault://env/x}"]}),
]


@pytest.mark.parametrize(("name", "field", "value"), OF_ALL_ROUTES)
def test_a_value_of_a_plugin_of_all_routes_that_would_mean_something_else_is_refused(
    document: Document, environment: dict[str, str], name: str, field: str, value: object
) -> None:
    next(each for each in document["plugins"] if each["name"] == name)["config"][field] = value

    with pytest.raises(UnsupportedError, match=rf"plugins\[\d\]\({name}\)\.config\.{field}"):
        read_document(document, environment)


@pytest.mark.parametrize("field", ["origins", "headers"])
def test_what_kong_would_allow_to_everybody_must_be_given(
    document: Document, environment: dict[str, str], field: str
) -> None:
    del document["plugins"][0]["config"][field]

    with pytest.raises(UnsupportedError, match=rf"plugins\[0\]\(cors\)\.config\.{field}: must be given"):
        read_document(document, environment)


def test_only_plugins_that_change_answers_stand_for_all_routes(document: Document, environment: dict[str, str]) -> None:
    document["plugins"].append({"name": "acl", "config": {"allow": ["staff"]}})

    with pytest.raises(UnsupportedError, match=r"plugins\[2\]"):
        read_document(document, environment)


CHANGES = [
    (("plugins", 1, "name"), "cors"),
    (("_format_version",), "2.1"),
    (("services", 0, "protocol"), "https"),
    (("services", 0, "host"), "elsewhere.example"),
    (("services", 0, "write_timeout"), 1),
    (("services", 0, "plugins", 0, "name"), "cors"),
    (("services", 0, "plugins", 0, "enabled"), False),
    (("services", 0, "plugins", 1, "config", "anonymous"), "nobody"),
    (("services", 0, "routes", 2, "headers"), {"authorization": ["Basic"]}),
    (("services", 0, "routes", 2, "headers"), {"authorization": ["~*^basic"]}),
    (("services", 0, "routes", 2, "headers"), {"authorization": ["~*basic", "~*digest"]}),
    (("services", 0, "routes", 2, "headers"), {"host": ["~*basic"]}),
    (("services", 0, "routes", 0, "strip_path"), True),
    (("services", 0, "routes", 0, "paths"), ["~/update/.*"]),
    (("services", 0, "routes", 0, "protocols"), ["https"]),
    (("services", 0, "routes", 0, "name"), "stores"),
    (("services", 0, "routes", 0, "preserve_host"), True),
    (("upstreams", 0, "algorithm"), "consistent-hashing"),
    (("upstreams", 0, "targets", 0, "target"), "no-port"),
    (("upstreams", 0, "healthchecks", "threshold"), 50),
    (("upstreams", 0, "healthchecks", "passive"), {}),
    (("upstreams", 0, "healthchecks", "active", "unhealthy", "timeouts"), 1),
    (("upstreams", 0, "healthchecks", "active", "healthy", "http_statuses"), [200, 302]),
    (("snis", 0, "name"), "example.org"),
    (("snis", 0, "certificate", "id"), "another"),
    (("consumers", 2, "jwt_secrets", 0, "algorithm"), "RS256"),
    (("consumers", 2, "username"), "bob"),
    (("consumers", 2, "keyauth_credentials", 0, "key"), "bob-demo-key"),
    (("consumers", 1, "plugins", 0, "name"), "acl"),
    (("consumers", 1, "plugins", 0, "config", "trigger"), "x"),
    (("consumers", 1, "plugins", 0, "config", "status_code"), 200),
]


@pytest.mark.parametrize(("place", "value"), CHANGES)
def test_a_value_that_would_mean_something_else_is_refused(
    document: Document, environment: dict[str, str], place: tuple[str | int, ...], value: object
) -> None:
    at(document, place[:-1])[place[-1]] = value

    with pytest.raises(UnsupportedError):
        render(document, environment=environment, listen_http="127.0.0.1:1", listen_https="127.0.0.1:2")


def test_a_field_whose_default_is_not_carried_over_must_be_given(
    document: Document, environment: dict[str, str]
) -> None:
    del document["services"][0]["routes"][0]["strip_path"]

    with pytest.raises(UnsupportedError, match=r"strip_path: must be given"):
        read_document(document, environment)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(KongEnvoyError, match=r"nowhere\.yaml cannot be read"):
        load(tmp_path / "nowhere.yaml")


@pytest.mark.parametrize("text", ["a: [", "- a", ""])
def test_a_file_that_is_no_mapping_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "kong.yaml"
    file.write_text(text)

    with pytest.raises(KongEnvoyError, match=r"kong\.yaml"):
        load(file)
