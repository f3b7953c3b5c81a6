"""Reads the plugins of a service, a route or a consumer, in the shape that the script of the gateway reads."""

from collections.abc import Callable
from typing import Any

from kong_envoy.environment import Environment
from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, entries, nested, only, optional, required, text, texts
from kong_envoy.plugins_of_access import read_acl, read_rate_limiting, read_request_size_limiting
from kong_envoy.plugins_of_headers import read_correlation_id, read_request_transformer
from kong_envoy.plugins_of_identity import read_basic_auth, read_jwt, read_key_auth

PLUGIN: Table = {
    "name": required(text),
    "instance_name": optional(text),
    "enabled": optional(only(True), True),
    "tags": optional(texts),
    "config": required(nested),
}

Reader = Callable[[str, object, Environment, str], dict[str, Any]]
"""Takes where the configuration stands, the configuration, the environment, and the scope that counts together."""

READERS: dict[str, Reader] = {
    "acl": lambda where, config, _environment, _scope: read_acl(where, config),
    "basic-auth": lambda where, config, _environment, _scope: read_basic_auth(where, config),
    "correlation-id": lambda where, config, _environment, _scope: read_correlation_id(where, config),
    "jwt": lambda where, config, _environment, _scope: read_jwt(where, config),
    "key-auth": lambda where, config, _environment, _scope: read_key_auth(where, config),
    "rate-limiting": lambda where, config, _environment, scope: read_rate_limiting(where, config, scope),
    "request-size-limiting": lambda where, config, _environment, _scope: read_request_size_limiting(where, config),
    "request-transformer": lambda where, config, environment, _scope: read_request_transformer(
        where, config, environment
    ),
}


def read_plugins(where: str, given: object, environment: Environment, scope: str) -> dict[str, dict[str, Any]]:
    """The plugins by name. Raises UnsupportedError for a plugin, a field or a value that is not carried over."""
    plugins: dict[str, dict[str, Any]] = {}
    for place, entry in entries(where, given):
        name = entry.get("name") if isinstance(entry, dict) else None
        named = f"{place}({name})"
        plugin = check(named, entry, PLUGIN)
        if plugin["name"] not in READERS:
            raise UnsupportedError(named, f"the plugin is not carried over; known: {', '.join(READERS)}")
        if plugin["name"] in plugins:
            raise UnsupportedError(named, "the plugin is there twice")
        plugins[plugin["name"]] = READERS[plugin["name"]](f"{named}.config", plugin["config"], environment, scope)
    return plugins
