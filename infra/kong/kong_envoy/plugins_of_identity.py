"""Reads jwt, key-auth and basic-auth as alternatives, each of which leaves a request it knows nothing of to the next.

`anonymous` is required: without it each plugin would demand a credential of its own kind.
"""

from typing import Any

from kong_envoy.fields import Table, check, flag, only, optional, required, text, texts

JWT: Table = {
    "anonymous": required(text),
    "key_claim_name": optional(only("iss"), "iss"),
    "claims_to_verify": optional(only([], ["exp"]), []),
    "header_names": optional(texts, ["authorization"]),
    "uri_param_names": optional(texts, ["jwt"]),
    "cookie_names": optional(only([]), []),
    "secret_is_base64": optional(only(False), False),
    "maximum_expiration": optional(only(0), 0),
    "run_on_preflight": optional(only(True), True),
}
KEY_AUTH: Table = {
    "anonymous": required(text),
    "key_names": optional(texts, ["apikey"]),
    "key_in_header": optional(flag, True),
    "key_in_query": optional(flag, True),
    "key_in_body": optional(only(False), False),
    "hide_credentials": optional(flag, False),
    "run_on_preflight": optional(only(True), True),
}
BASIC_AUTH: Table = {
    "anonymous": required(text),
    "hide_credentials": optional(flag, False),
    "realm": optional(text, "service"),  # said only where there is no anonymous consumer
}


def read_jwt(where: str, config: object) -> dict[str, Any]:
    """The plugin jwt; Envoy checks the signatures, the script the rest."""
    values = check(where, config, JWT)
    kept = {name: values[name] for name in ("anonymous", "header_names", "uri_param_names")}
    return {**kept, "verify_exp": "exp" in values["claims_to_verify"]}


def read_key_auth(where: str, config: object) -> dict[str, Any]:
    """The plugin key-auth."""
    values = check(where, config, KEY_AUTH)
    kept = ("anonymous", "key_names", "key_in_header", "key_in_query", "hide_credentials")
    return {name: values[name] for name in kept}


def read_basic_auth(where: str, config: object) -> dict[str, Any]:
    """The plugin basic-auth."""
    values = check(where, config, BASIC_AUTH)
    return {name: values[name] for name in ("anonymous", "hide_credentials")}
