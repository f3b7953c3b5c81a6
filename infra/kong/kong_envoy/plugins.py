"""The part of Kong's plugins that Envoy can answer alike: one model per plugin, with Kong's names and defaults.

A field that allows one value lets the file write out Kong's default. A field is required if its default in Kong cannot
be carried over.
"""

import re
from typing import Annotated, Generic, Literal, Self, TypeVar, get_args

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator
from typing_extensions import TypedDict

from kong_envoy.environment import Environment, expanded
from kong_envoy.fields import Entity, HeaderName, Off, On, Origin, Positive, Tagged, Text, Texts, Zero, not_host, only

CLAIMS_TEMPLATE = re.compile(
    re.escape('$(shared.authenticated_jwt_token and shared.authenticated_jwt_token:match("%.(.-)%.") or "')
    + r'([^"\\$]*)'
    + re.escape('")')
)
"""The template that stands for the middle part of the token that the plugin jwt has verified, or else for a literal."""
MAX_BUFFERED = 1024 * 1024
"""Bytes of a body of unannounced length that the gateway holds in memory to measure it."""
SIZE_UNITS = {"bytes": 1, "kilobytes": 1024, "megabytes": 1024 * 1024}
FIXED_HEADERS = "connection", "content-length", "transfer-encoding", "upgrade", "x-kong-request-id"

Method = Literal["GET", "HEAD", "PUT", "PATCH", "POST", "DELETE", "OPTIONS", "TRACE", "CONNECT"]


class Acl(Entity):
    allow: Texts
    hide_groups_header: bool = False
    always_use_authenticated_groups: Off = False


class Authentication(Entity):
    """Several such plugins are alternatives; without `anonymous` each would demand a credential of its own kind."""

    anonymous: Text


class BasicAuth(Authentication):
    hide_credentials: bool = False
    realm: Text = "service"  # sent only where there is no anonymous consumer


class KeyAuth(Authentication):
    key_names: Texts = Field(["apikey"])
    key_in_header: On = True
    key_in_query: Off
    key_in_body: Off = False
    hide_credentials: Off = False
    run_on_preflight: On = True


class Jwt(Authentication):
    claims_to_verify: Annotated[Texts, only([], ["exp"])] = Field([])
    header_names: Annotated[Texts, only(["authorization"])] = Field(["authorization"])
    uri_param_names: Annotated[Texts, only([])]
    cookie_names: Annotated[Texts, only([])] = Field([])
    key_claim_name: Literal["iss"] = "iss"
    secret_is_base64: Off = False
    maximum_expiration: Zero = 0
    run_on_preflight: On = True


class CorrelationId(Entity):
    header_name: Text = "Kong-Request-ID"
    generator: Literal["uuid"]
    echo_downstream: bool = False


class RateLimiting(Entity):
    second: Positive | None = None
    minute: Positive | None = None
    hour: Positive | None = None
    day: Positive | None = None
    limit_by: Literal["consumer", "ip"] = "consumer"
    policy: Literal["local"] = "local"
    fault_tolerant: bool = True  # a local counter has no fault to tolerate
    hide_client_headers: bool = False
    error_code: Annotated[int, Field(ge=400, le=599)] = 429
    error_message: Text = "API rate limit exceeded"

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        if not (self.second or self.minute or self.hour or self.day):
            raise ValueError("needs at least one of second, minute, hour, day")
        return self


class RequestSizeLimiting(Entity):
    allowed_payload_size: Positive = 128
    size_unit: Literal["bytes", "kilobytes", "megabytes"] = "megabytes"
    require_content_length: Off = False

    @model_validator(mode="after")
    def _can_be_buffered(self) -> Self:
        if self.allowed_payload_size * SIZE_UNITS[self.size_unit] > MAX_BUFFERED:
            raise ValueError(f"at most {MAX_BUFFERED} bytes are carried over")
        return self


def _added_header(header: object, info: ValidationInfo[Environment]) -> dict[str, str]:
    name, value = _parted(header)
    if claims := CLAIMS_TEMPLATE.fullmatch(value):
        return {"name": not_host(name), "claims_or": claims[1]}
    return {"name": not_host(name), "value": expanded(value, info.context)}


def _parted(header: object) -> tuple[str, str]:
    name, colon, value = str(header).partition(":")
    if not (name and colon and value):
        raise ValueError("must have the form name:value")
    return name, value


AddedHeader = Annotated[dict[str, str], BeforeValidator(_added_header)]


class Removed(TypedDict, total=False):
    headers: list[HeaderName]


class Added(TypedDict, total=False):
    headers: list[AddedHeader]


class RequestTransformer(Entity):
    remove: Removed = Field(Removed())
    add: Added = Field(Added())


def _not_fixed(name: str) -> str:
    """Returns the name of an answer's header; raises ValueError for one that the connection or Kong decides about."""
    if name.lower() in FIXED_HEADERS:
        raise ValueError(f"{', '.join(FIXED_HEADERS)} are not carried over")
    return name


def _plain_header(header: object) -> dict[str, str]:
    name, value = _parted(header)
    if "$(" in value or value.startswith("{vault:"):
        raise ValueError("only a value that stands for itself is carried over")
    return {"name": _not_fixed(name), "value": value.strip()}


AnswerHeaderName = Annotated[Text, AfterValidator(_not_fixed)]
PlainHeader = Annotated[dict[str, str], BeforeValidator(_plain_header)]


class AnswerRemoved(TypedDict, total=False):
    headers: list[AnswerHeaderName]


class AnswerAdded(TypedDict, total=False):
    headers: list[PlainHeader]


class ResponseTransformer(Entity):
    """Transforms headers; bodies pass unchanged."""

    remove: AnswerRemoved = Field(AnswerRemoved())
    add: AnswerAdded = Field(AnswerAdded())


class Cors(Entity):
    """Without values, Kong would allow every origin, and every header that a browser asks for."""

    origins: Annotated[list[Origin], Field(min_length=1)]
    methods: Annotated[list[Method], Field(min_length=1)] = Field(list(get_args(Method)))
    headers: Annotated[Texts, Field(min_length=1)]
    exposed_headers: Texts = Field([])
    credentials: bool = False
    max_age: Positive | None = None
    private_network: Off = False
    preflight_continue: Off = False


class RequestTermination(Entity):
    status_code: Annotated[int, Field(ge=400, le=599)]
    message: Text


PluginName = TypeVar("PluginName", bound=str)
PluginConfig = TypeVar("PluginConfig", bound=Entity)


class Plugin(Tagged, Generic[PluginName, PluginConfig]):
    name: PluginName
    instance_name: Text | None = None
    enabled: On = True
    config: PluginConfig


RateLimit = Plugin[Literal["rate-limiting"], RateLimiting]
CorsPlugin = Plugin[Literal["cors"], Cors]
AnswerPlugin = Plugin[Literal["response-transformer"], ResponseTransformer]
ConsumerPlugin = Annotated[
    RateLimit | Plugin[Literal["request-termination"], RequestTermination], Field(discriminator="name")
]
GlobalPlugin = Annotated[CorsPlugin | AnswerPlugin, Field(discriminator="name")]
"""Those that may stand at the top of the file, for the routes of all services."""
AnyPlugin = Annotated[
    Plugin[Literal["acl"], Acl]
    | Plugin[Literal["basic-auth"], BasicAuth]
    | Plugin[Literal["correlation-id"], CorrelationId]
    | CorsPlugin
    | Plugin[Literal["jwt"], Jwt]
    | Plugin[Literal["key-auth"], KeyAuth]
    | RateLimit
    | Plugin[Literal["request-size-limiting"], RequestSizeLimiting]
    | Plugin[Literal["request-transformer"], RequestTransformer]
    | AnswerPlugin,
    Field(discriminator="name"),
]
