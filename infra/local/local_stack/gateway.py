"""The gateway of the local stack: a real Envoy that obeys the gateway's one file, infra/kong/kong.yaml."""

import base64
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kong_envoy import KongEnvoyError, load, render, to_yaml
from local_stack import LocalStackError
from local_stack.settings import HOST, ROOT, Settings
from local_stack.stack_directory import StackDirectory, write_private
from local_stack.stack_file import Basic, Credentials, Jwt
from testkit.certificates import Certificates

KONG_FILE = ROOT / "infra" / "kong" / "kong.yaml"


def render_gateway(directory: StackDirectory, settings: Settings, secret: str) -> None:
    """Writes Envoy's configuration. `settings` has a port for every server; `secret` proves to the edges who calls.

    Raises LocalStackError when Kong's file cannot be rendered.
    """
    certificates = Certificates(directory.tls)
    secrets = {
        "GATEWAY_SECRET": secret,
        "GATEWAY_TLS_CERTIFICATE": certificates.certificate.read_text(),
        "GATEWAY_TLS_KEY": certificates.key.read_text(),
    }
    try:
        config = render(
            load(KONG_FILE),
            environment={**os.environ, **secrets},
            listen_http=f"{HOST}:{settings.gateway_http_port}",
            listen_https=f"{HOST}:{settings.gateway_https_port}",
            admin=f"{HOST}:{settings.gateway_admin_port}",
            resolve={f"ws-edge-{number}:8080": f"{HOST}:{settings.edge_port(number)}" for number in (1, 2)},
        )
    except KongEnvoyError as error:
        raise LocalStackError(f"{KONG_FILE} cannot be rendered for Envoy: {error}") from error
    write_private(directory.envoy_file, to_yaml(config))


def read_demo_users(kong_file: Path) -> dict[str, Credentials]:
    """The users of Kong's file that have credentials, by name. Raises LocalStackError when there is none."""
    consumers = {consumer["username"]: _credentials(consumer) for consumer in load(kong_file).get("consumers", [])}
    users = {name: user for name, user in consumers.items() if user.basic or user.key or user.jwt}
    if not users:
        raise LocalStackError(f"{kong_file} names no consumer with credentials")
    return users


def authorization(user: Credentials) -> Mapping[str, str]:
    """The header of basic authentication for the user."""
    if user.basic is None:
        return {}
    pair = f"{user.basic.username}:{user.basic.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


def _credentials(consumer: dict[str, Any]) -> Credentials:
    kinds = ("basicauth_credentials", "keyauth_credentials", "jwt_secrets")
    basic, key, jwt = (next(iter(consumer.get(kind, [])), None) for kind in kinds)
    groups = tuple(acl["group"] for acl in consumer.get("acls", []))
    return Credentials(
        customer_id=consumer.get("custom_id", "") if "staff" not in groups else "",
        groups=groups,
        basic=Basic.model_validate(basic) if basic else None,
        key=key["key"] if key else None,
        jwt=Jwt.model_validate(jwt) if jwt else None,
    )
