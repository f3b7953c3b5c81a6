"""Renders the gateway's file for Kong, infra/kong/kong.yaml, as a configuration for Envoy with the same answers."""

from kong_envoy.errors import KongEnvoyError as KongEnvoyError
from kong_envoy.gateway import load as load
from kong_envoy.rendering import envoy_command as envoy_command
from kong_envoy.rendering import render as render
from kong_envoy.rendering import to_yaml as to_yaml
