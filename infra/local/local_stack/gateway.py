"""The gateway of the local stack: a real Envoy that obeys the gateway's one file, infra/kong/kong.yaml."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from websockets.headers import build_authorization_basic

from kong_envoy import KongEnvoyError, load, render, to_yaml
from local_stack import LocalStackError
from local_stack.settings import EDGES, ROOT, Settings
from local_stack.stack_directory import write_private
from local_stack.stack_file import Credentials
from testkit.certificates import Certificates

KONG_FILE = ROOT / "infra" / "kong" / "kong.yaml"


def configure_gateway(settings: Settings, secret: str) -> dict[str, Credentials]:
    """Writes Envoy's configuration, issues its certificate, and returns the users of Kong's file by name.

    `secret` proves to the edges who calls. Raises LocalStackError for a file that cannot be rendered or names no user.
    """
    at, certificates = settings.address_of, Certificates(settings.files.tls)
    certificates.ensure(datetime.now(UTC))
    secrets = {
        "GATEWAY_SECRET": secret,
        "GATEWAY_TLS_CERTIFICATE": certificates.certificate.read_text(),
        "GATEWAY_TLS_KEY": certificates.key.read_text(),
    }
    listen = {"listen_http": at("gateway-http"), "listen_https": at("gateway-https"), "admin": at("gateway-admin")}
    edges = {f"ws-{name}:8080": at(name) for name in EDGES}
    try:
        document = load(KONG_FILE)
        config = render(document, environment={**os.environ, **secrets}, **listen, resolve=edges)
    except KongEnvoyError as error:
        raise LocalStackError(f"{KONG_FILE} cannot be rendered for Envoy: {error}") from error
    write_private(settings.files.envoy_file, to_yaml(config))
    return demo_users(document)


def demo_users(document: Mapping[str, Any]) -> dict[str, Credentials]:
    """The users of Kong's document that have credentials, by name. Raises LocalStackError when there is none."""
    consumers = {consumer["username"]: _credentials(consumer) for consumer in document.get("consumers", [])}
    users = {name: user for name, user in consumers.items() if user.basic or user.key or user.jwt}
    if not users:
        raise LocalStackError(f"{KONG_FILE} names no consumer with credentials")
    return users


def staff_headers(users: Mapping[str, Credentials]) -> Mapping[str, str]:
    """The headers of the first of staff. Raises LocalStackError when nobody of staff has a password."""
    for user in users.values():
        if "staff" in user.groups and user.basic:
            return authorization(user)
    raise LocalStackError(f"{KONG_FILE} names no consumer of the group staff with a password")


def authorization(user: Credentials) -> Mapping[str, str]:
    """The header of basic authentication for the user."""
    basic = user.basic
    return {"Authorization": build_authorization_basic(basic.username, basic.password)} if basic else {}


def _credentials(consumer: dict[str, Any]) -> Credentials:
    kinds = ("basicauth_credentials", "keyauth_credentials", "jwt_secrets")
    basic, key, jwt = (next(iter(consumer.get(kind, [])), None) for kind in kinds)
    groups = tuple(acl["group"] for acl in consumer.get("acls", []))
    return Credentials(
        customer_id=consumer.get("custom_id", "") if "staff" not in groups else "",
        groups=groups,
        basic=basic,
        key=key and key["key"],
        jwt=jwt,
    )
