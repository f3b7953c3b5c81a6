"""Renders the gateway's file for Kong, infra/kong/kong.yaml, as a configuration for Envoy with the same answers."""

from kong_envoy.binary import envoy_binary, envoy_command
from kong_envoy.document import load
from kong_envoy.errors import AddressError, KongEnvoyError, MissingVariableError, UnreadableError, UnsupportedError
from kong_envoy.rendering import render, to_yaml

__all__ = [
    "AddressError",
    "KongEnvoyError",
    "MissingVariableError",
    "UnreadableError",
    "UnsupportedError",
    "envoy_binary",
    "envoy_command",
    "load",
    "render",
    "to_yaml",
]
