"""Reads the gateway's file as a whole and checks that its parts fit together."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from kong_envoy.certificates import Certificate, read_certificate
from kong_envoy.consumers import Consumers, read_consumers
from kong_envoy.environment import Environment
from kong_envoy.errors import UnreadableError, UnsupportedError
from kong_envoy.fields import Table, check, nested, only, optional, required
from kong_envoy.services import Route, read_services
from kong_envoy.upstreams import Upstream, read_upstreams

DOCUMENT: Table = {
    "_format_version": required(only("3.0")),
    "_transform": optional(only(True), True),
    "upstreams": required(nested),
    "services": required(nested),
    "consumers": optional(nested, []),
    "certificates": optional(nested, []),
    "snis": optional(nested, []),
}


@dataclass(frozen=True)
class Gateway:
    """Everything that the file says."""

    routes: list[Route]
    upstreams: dict[str, Upstream]
    consumers: Consumers
    certificate: Certificate | None
    """Absent when the file has none; then there can be no TLS."""


def load(file: Path) -> dict[str, Any]:
    """The document of the file. Raises UnreadableError when it is missing or is not a YAML mapping."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableError(f"{file} cannot be read: {error.strerror}") from error
    except yaml.YAMLError as error:
        raise UnreadableError(f"{file} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UnreadableError(f"{file} must hold a mapping in Kong's declarative format")
    return document


def read_document(document: Mapping[str, Any], environment: Environment, *, tls: bool) -> Gateway:
    """Reads the document; the certificate only for `tls`. Raises a KongEnvoyError naming the first thing wrong."""
    values = check("kong.yaml", dict(document), DOCUMENT)
    certificate = read_certificate(values["certificates"], values["snis"], environment) if tls else None
    gateway = Gateway(
        read_services("services", values["services"], environment),
        read_upstreams("upstreams", values["upstreams"]),
        read_consumers("consumers", values["consumers"]),
        certificate,
    )
    for route in gateway.routes:
        _check_references(route, gateway)
    return gateway


def _check_references(route: Route, gateway: Gateway) -> None:
    if route.service.upstream not in gateway.upstreams:
        raise UnsupportedError(f"route {route.name}", f"its host {route.service.upstream!r} must be an upstream")
    anonymous = {plugin["anonymous"] for plugin in route.plugins.values() if "anonymous" in plugin}
    if len(anonymous) > 1:
        raise UnsupportedError(f"route {route.name}", "its plugins must name the same anonymous consumer")
    for username in anonymous - set(gateway.consumers.by_username):
        raise UnsupportedError(f"route {route.name}", f"there is no consumer {username!r} for anonymous")
