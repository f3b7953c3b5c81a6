"""Renders the gateway's file for Envoy."""

from collections.abc import Mapping
from typing import Any

import yaml

from kong_envoy.addresses import loopback_address
from kong_envoy.clusters import clusters_of
from kong_envoy.document import read_document
from kong_envoy.environment import Environment
from kong_envoy.listeners import listener


def render(
    document: Mapping[str, Any],
    *,
    listen_http: str,
    environment: Environment,
    listen_https: str | None = None,
    resolve: Mapping[str, str] | None = None,
    admin: str | None = None,
) -> dict[str, Any]:
    """The configuration of an Envoy that answers as Kong would with the document.

    Addresses are `host:port` and must be of this machine; `resolve` says where a target of an upstream is found.
    Raises UnsupportedError for the first thing in the document that would not be carried over exactly,
    MissingVariableError for a variable that `environment` does not have, AddressError for a bad address.
    """
    gateway = read_document(document, environment, tls=listen_https is not None)
    listeners = [listener("http", listen_http, gateway, None)]
    if listen_https:
        listeners.append(listener("https", listen_https, gateway, gateway.certificate))
    config: dict[str, Any] = {
        "static_resources": {"listeners": listeners, "clusters": clusters_of(gateway, resolve or {})}
    }
    if admin:
        config["admin"] = {"address": loopback_address(admin)}
    return config


def to_yaml(config: Mapping[str, Any]) -> str:
    """The configuration as the text of a YAML file."""
    return yaml.dump(config, Dumper=_BlockDumper, sort_keys=False, width=120)


class _BlockDumper(yaml.SafeDumper):
    """Writes texts of many lines as blocks, so that a script can be read."""

    def ignore_aliases(self, data: Any) -> bool:
        del data
        return True


def _block(dumper: _BlockDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_BlockDumper.add_representer(str, _block)
