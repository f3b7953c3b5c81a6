"""Writes the Lua script that decides about every request: what the file says as a table, then the programs in lua/."""

from collections.abc import Mapping
from importlib.resources import files

from kong_envoy.document import Gateway
from kong_envoy.jwt_filter import provider_of

PARTS = ("answers", "request", "credentials", "limits", "gateway")


def script_of(gateway: Gateway) -> str:
    """The whole script."""
    credentials = {
        kind: {
            provider_of(key) if kind == "jwt_secrets" else key: _public(kind, values) for key, values in held.items()
        }
        for kind, held in gateway.consumers.credentials.items()
    }
    config = {
        "routes": {route.name: route.plugins for route in gateway.routes},
        "consumers": gateway.consumers.by_username,
        **credentials,
    }
    programs = (files("kong_envoy").joinpath("lua", f"{part}.lua").read_text(encoding="utf-8") for part in PARTS)
    return "\n".join([f"local CONFIG = {literal(config)}\n", *programs])


def literal(value: object) -> str:
    """A value as a Lua expression. Absent values are left out; texts are written byte by byte where need be."""
    match value:
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case str():
            return '"' + "".join(_escaped(byte) for byte in value.encode("utf-8")) + '"'
        case Mapping():
            held = (f"[{literal(key)}] = {literal(each)}" for key, each in value.items() if each is not None)
            return "{ " + ", ".join(held) + " }"
        case list() | tuple():
            return "{ " + ", ".join(literal(each) for each in value) + " }"
    raise TypeError(f"{value!r} has no form in Lua")


def _escaped(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and chr(byte) not in '"\\'
    return chr(byte) if plain else f"\\{byte:03d}"


def _public(kind: str, values: dict[str, str]) -> dict[str, str]:
    """What the script needs: the secrets of tokens are for Envoy's own filter."""
    return {name: value for name, value in values.items() if not (kind == "jwt_secrets" and name == "secret")}
