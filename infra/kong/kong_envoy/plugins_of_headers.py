"""Reads what changes the headers and the query of a request: correlation-id and request-transformer."""

import re
from typing import Any

from kong_envoy.environment import Environment, expanded
from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, flag, nested, only, optional, required, text, texts

CORRELATION_ID: Table = {
    "header_name": optional(text, "Kong-Request-ID"),
    "generator": required(only("uuid")),
    "echo_downstream": optional(flag, False),
}
REQUEST_TRANSFORMER: Table = {"remove": optional(nested, {}), "add": optional(nested, {})}
REMOVE: Table = {"headers": optional(texts, []), "querystring": optional(texts, [])}
ADD: Table = {"headers": optional(texts, [])}
CLAIMS_TEMPLATE = re.compile(
    re.escape("$(shared.authenticated_jwt_token and shared.authenticated_jwt_token:match(")
    + re.escape('"%.(.-)%.") or "')
    + r'([^"\\$]*)'
    + re.escape('")')
)
"""The template that stands for the middle part of the token that the plugin jwt has verified, or else for a literal."""


def read_correlation_id(where: str, config: object) -> dict[str, Any]:
    """The plugin correlation-id."""
    values = check(where, config, CORRELATION_ID)
    return {"header_name": values["header_name"], "echo_downstream": values["echo_downstream"]}


def read_request_transformer(where: str, config: object, environment: Environment) -> dict[str, Any]:
    """The plugin request-transformer, as far as it removes, and adds headers."""
    values = check(where, config, REQUEST_TRANSFORMER)
    remove = check(f"{where}.remove", values["remove"], REMOVE)
    add = check(f"{where}.add", values["add"], ADD)["headers"]
    return {
        "remove_headers": [_not_host(f"{where}.remove.headers", name) for name in remove["headers"]],
        "remove_querystring": remove["querystring"],
        "add_headers": [_header(f"{where}.add.headers", each, environment) for each in add],
    }


def _header(where: str, given: str, environment: Environment) -> dict[str, str]:
    name, colon, value = given.partition(":")
    if not (name and colon and value):
        raise UnsupportedError(where, f"must have the form name:value, not {given!r}")
    claims = CLAIMS_TEMPLATE.fullmatch(value)
    if claims:
        return {"name": _not_host(where, name), "claims_or": claims[1]}
    return {"name": _not_host(where, name), "value": expanded(f"{where}({name})", value, environment)}


def _not_host(where: str, name: str) -> str:
    if name.lower() == "host":
        raise UnsupportedError(where, "Host is not carried over: Kong leaves it alone here")
    return name
