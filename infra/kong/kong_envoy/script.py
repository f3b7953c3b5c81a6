"""Writes the Lua script that decides about every request: the file's content as a table, then the programs in lua/."""

from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from kong_envoy.models import KongFile
from kong_envoy.plugins import SIZE_UNITS, AnyPlugin, ConsumerPlugin

PARTS = ("answers", "request", "origins", "credentials", "limits", "gateway")


def provider_of(key: str) -> str:
    """Names Envoy's provider for tokens with the issuer `key`, which is also the key of their claims."""
    return f"jwt:{key}"


def script_of(gateway: KongFile) -> str:
    """Returns the whole script. The secrets of tokens are not in it: they are for Envoy's own filter."""
    config: dict[str, dict[str, Any]] = {"size_units": SIZE_UNITS, "routes": {}, "consumers": {}}
    config |= {"basicauth_credentials": {}, "keyauth_credentials": {}, "jwt_secrets": {}}
    config["grpc_routes"] = {route.name: True for _, route in gateway.routes if route.is_grpc}
    everywhere = _plugins(gateway.plugins, "all services")
    for service, route in gateway.routes:
        shared = everywhere | _plugins(service.plugins, f"service {service.name}")
        config["routes"][route.name] = shared | _plugins(route.plugins, f"route {route.name}")
    for consumer in gateway.consumers:
        owner = {"consumer": consumer.username}
        config["consumers"][consumer.username] = {
            **consumer.model_dump(include={"id", "username", "custom_id"}),
            "groups": [acl["group"] for acl in consumer.acls],
            "plugins": _plugins(consumer.plugins, f"consumer {consumer.username}"),
        }
        for basic in consumer.basicauth_credentials:
            config["basicauth_credentials"][basic["username"]] = {**basic, **owner}
        for key in consumer.keyauth_credentials:
            config["keyauth_credentials"][key["key"]] = {**key, **owner}
        for issuer in consumer.jwt_secrets:
            config["jwt_secrets"][provider_of(issuer["key"])] = {"key": issuer["key"], **owner}
    programs = (files("kong_envoy").joinpath("lua", f"{part}.lua").read_text(encoding="utf-8") for part in PARTS)
    return "\n".join([f"local CONFIG = {literal(config)}\n", *programs])


def _plugins(plugins: Iterable[AnyPlugin | ConsumerPlugin], scope: str) -> dict[str, Any]:
    """Returns the settings of plugins by name; requests within one `scope` are counted together."""
    return {plugin.name: plugin.config.model_dump() | {"scope": scope} for plugin in plugins}


def literal(value: object) -> str:
    """Returns a value as a Lua expression. Absent values are left out; texts are written byte by byte where need be."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return '"' + "".join(_escaped(byte) for byte in value.encode("utf-8")) + '"'
        case Mapping():
            fields = (f"[{literal(key)}] = {literal(item)}" for key, item in value.items() if item is not None)
            return "{ " + ", ".join(fields) + " }"
        case list() | tuple():
            return "{ " + ", ".join(literal(item) for item in value) + " }"
    raise TypeError(f"{value!r} has no form in Lua")


def _escaped(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and chr(byte) not in '"\\'
    return chr(byte) if plain else f"\\{byte:03d}"
