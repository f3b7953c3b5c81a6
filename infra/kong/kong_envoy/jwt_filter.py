"""Writes Envoy's jwt_authn filter, which checks the signatures of tokens and passes every request on.

Whether a token's expiry holds and whether a token was needed is decided by the script, as Kong has it; so the filter
gets a clock skew of years.
"""

from base64 import urlsafe_b64encode
from typing import Any

from kong_envoy.document import Gateway

TYPE = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"
YEARS_S = 2_000_000_000


def provider_of(key: str) -> str:
    """The provider that checks the tokens whose issuer is `key`; also where its claims are found."""
    return f"jwt:{key}"


def jwt_filter(gateway: Gateway) -> dict[str, Any] | None:
    """The filter, or nothing when no route takes tokens or nobody has a secret for them."""
    plugins = [route.plugins["jwt"] for route in gateway.routes if "jwt" in route.plugins]
    secrets = gateway.consumers.credentials["jwt_secrets"]
    if not (plugins and secrets):
        return None
    headers = sorted({name for plugin in plugins for name in plugin["header_names"]})
    params = sorted({name for plugin in plugins for name in plugin["uri_param_names"]})
    providers = {provider_of(key): _provider(key, held["secret"], headers, params) for key, held in secrets.items()}
    any_of = [*({"provider_name": name} for name in providers), {"allow_missing_or_failed": {}}]
    config = {
        "@type": TYPE,
        "providers": providers,
        "rules": [{"match": {"prefix": "/"}, "requires": {"requires_any": {"requirements": any_of}}}],
    }
    return {"name": "envoy.filters.http.jwt_authn", "typed_config": config}


def _provider(issuer: str, secret: str, headers: list[str], params: list[str]) -> dict[str, Any]:
    key = urlsafe_b64encode(secret.encode()).rstrip(b"=").decode()
    return {
        "issuer": issuer,
        "local_jwks": {"inline_string": f'{{"keys":[{{"kty":"oct","alg":"HS256","k":"{key}"}}]}}'},
        "from_headers": [
            {"name": name, "value_prefix": prefix} for name in headers for prefix in ("Bearer ", "bearer ")
        ],
        "from_params": params,
        "forward": True,
        "payload_in_metadata": provider_of(issuer),
        "clock_skew_seconds": YEARS_S,
    }
