"""Reads what can be asked for: services with their routes, and which plugins a request to each route meets."""

import re
from dataclasses import dataclass
from typing import Any

from kong_envoy.environment import Environment
from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, entries, nested, only, optional, required, text, texts, whole
from kong_envoy.plugins import read_plugins

SERVICE: Table = {
    "name": required(text),
    "host": required(text),
    "port": optional(whole(0, 65535), 80),  # Kong takes the ports of the upstream's targets
    "protocol": optional(only("http"), "http"),
    "retries": optional(whole(0, 32767), 5),
    "connect_timeout": optional(whole(1), 60000),
    "write_timeout": optional(whole(1), 60000),
    "read_timeout": optional(whole(1), 60000),
    "enabled": optional(only(True), True),
    "tags": optional(texts),
    "routes": optional(nested, []),
    "plugins": optional(nested, []),
}
ROUTE: Table = {
    "name": required(text),
    "paths": required(texts),
    "methods": optional(texts, []),
    "protocols": optional(only(["http", "https"]), ["http", "https"]),
    "strip_path": required(only(False)),
    "preserve_host": optional(only(False), False),
    "path_handling": optional(only("v0"), "v0"),
    "regex_priority": optional(only(0), 0),
    "tags": optional(texts),
    "plugins": optional(nested, []),
}
EXACT_PATH = re.compile(r"~(/(?:[A-Za-z0-9_/-]|\\.)*)\$")
"""The one form of regular expression that is carried over: a path from its beginning to its end."""


@dataclass(frozen=True)
class Service:
    """Where the requests of some routes go, and how long that may take. The times are milliseconds."""

    upstream: str
    retries: int
    connect_timeout: int
    idle_timeout: int
    """How long nothing may pass, in either direction."""


@dataclass(frozen=True)
class Route:
    """Which requests belong together, and the plugins that they meet, by name."""

    name: str
    paths: tuple[str, ...]
    """Prefixes, and expressions of the form EXACT_PATH."""
    methods: tuple[str, ...]
    service: Service
    plugins: dict[str, dict[str, Any]]


def read_services(where: str, given: object, environment: Environment) -> list[Route]:
    """The routes of all services. Raises UnsupportedError for what is not carried over."""
    routes: dict[str, Route] = {}
    for place, entry in entries(where, given):
        values = check(place, entry, SERVICE)
        shared = read_plugins(f"{place}.plugins", values["plugins"], environment, f"service {values['name']}")
        service = _service(place, values)
        for spot, given_route in entries(f"{place}.routes", values["routes"]):
            route = _route(spot, given_route, service, shared, environment)
            if route.name in routes:
                raise UnsupportedError(spot, f"there are two routes {route.name!r}")
            routes[route.name] = route
    return list(routes.values())


def _service(where: str, values: dict[str, Any]) -> Service:
    if values["read_timeout"] != values["write_timeout"]:
        raise UnsupportedError(f"{where}.write_timeout", "must equal read_timeout: Envoy has one idle timeout")
    return Service(values["host"], values["retries"], values["connect_timeout"], values["read_timeout"])


def _route(
    where: str, given: object, service: Service, shared: dict[str, dict[str, Any]], environment: Environment
) -> Route:
    values = check(where, given, ROUTE)
    for path in values["paths"]:
        if not path.startswith("/") and EXACT_PATH.fullmatch(path) is None:
            raise UnsupportedError(f"{where}.paths", f"only prefixes and ~EXACT$ are carried over, not {path!r}")
    own = read_plugins(f"{where}.plugins", values["plugins"], environment, f"route {values['name']}")
    return Route(values["name"], tuple(values["paths"]), tuple(values["methods"]), service, {**shared, **own})
