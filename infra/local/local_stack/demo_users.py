"""Reads the demo users from the gateway's file, which is the one place that names them."""

from pathlib import Path
from typing import Any

import yaml

from local_stack.errors import LocalStackError
from local_stack.stack_file import Basic, Credentials, Jwt


def read_demo_users(kong_file: Path) -> dict[str, Credentials]:
    """The users of the file that have credentials, by name. Raises LocalStackError when there is none."""
    document = yaml.safe_load(kong_file.read_text())
    consumers = {each["username"]: _credentials(each) for each in document.get("consumers", [])}
    users = {name: user for name, user in consumers.items() if user.basic or user.key or user.jwt}
    if not users:
        raise LocalStackError(f"{kong_file} names no consumer with credentials")
    return users


def _credentials(consumer: dict[str, Any]) -> Credentials:
    basic = next(iter(consumer.get("basicauth_credentials", [])), None)
    key = next(iter(consumer.get("keyauth_credentials", [])), None)
    jwt = next(iter(consumer.get("jwt_secrets", [])), None)
    groups = tuple(each["group"] for each in consumer.get("acls", []))
    return Credentials(
        customer_id=consumer.get("custom_id", "") if "staff" not in groups else "",
        groups=groups,
        basic=Basic(username=basic["username"], password=basic["password"]) if basic else None,
        key=key["key"] if key else None,
        jwt=Jwt(key=jwt["key"], secret=jwt["secret"], algorithm=jwt.get("algorithm", "HS256")) if jwt else None,
    )
