"""Reads who there is: consumers with their groups, credentials and limits of their own."""

from dataclasses import dataclass
from typing import Any

from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, entries, nested, only, optional, required, text, texts
from kong_envoy.plugins import read_plugins

CONSUMER: Table = {
    "username": required(text),
    "id": required(text),
    "custom_id": optional(text),
    "tags": optional(texts),
    "acls": optional(nested, []),
    "basicauth_credentials": optional(nested, []),
    "keyauth_credentials": optional(nested, []),
    "jwt_secrets": optional(nested, []),
    "plugins": optional(nested, []),
}
ACL: Table = {"group": required(text), "tags": optional(texts)}
CREDENTIALS: dict[str, tuple[str, Table]] = {
    "basicauth_credentials": ("username", {"username": required(text), "password": required(text)}),
    "keyauth_credentials": ("key", {"id": required(text), "key": required(text)}),
    "jwt_secrets": ("key", {"key": required(text), "secret": required(text), "algorithm": optional(only("HS256"))}),
}


@dataclass(frozen=True)
class Consumers:
    """Everybody who may come, in the shape that the script of the gateway reads."""

    by_username: dict[str, dict[str, Any]]
    credentials: dict[str, dict[str, dict[str, Any]]]
    """By kind, as the file names it, then by what the client shows; each has its consumer's `username`."""


def read_consumers(where: str, given: object) -> Consumers:
    """Reads the consumers of the file. Raises UnsupportedError for what is not carried over, and for doubles."""
    read = Consumers({}, {kind: {} for kind in CREDENTIALS})
    for place, entry in entries(where, given):
        consumer = check(place, entry, CONSUMER)
        _add(place, read.by_username, consumer["username"], _described(place, consumer))
        for kind, (key, table) in CREDENTIALS.items():
            for spot, credential in entries(f"{place}.{kind}", consumer[kind]):
                values = check(spot, credential, table) | {"consumer": consumer["username"]}
                _add(spot, read.credentials[kind], values[key], values)
    return read


def _described(where: str, consumer: dict[str, Any]) -> dict[str, Any]:
    groups = [check(place, acl, ACL)["group"] for place, acl in entries(f"{where}.acls", consumer["acls"])]
    plugins = read_plugins(f"{where}.plugins", consumer["plugins"], {}, scope=f"consumer {consumer['username']}")
    if others := set(plugins) - {"rate-limiting"}:
        raise UnsupportedError(f"{where}.plugins", f"only rate-limiting is carried over, not {min(others)}")
    return {
        "id": consumer["id"],
        "username": consumer["username"],
        "custom_id": consumer["custom_id"],
        "groups": groups,
        "rate_limiting": plugins.get("rate-limiting"),
    }


def _add(where: str, into: dict[str, dict[str, Any]], key: str, value: dict[str, Any]) -> None:
    if key in into:
        raise UnsupportedError(where, f"{key!r} is there twice")
    into[key] = value
