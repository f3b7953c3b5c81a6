"""Kong's declarative file as far as Envoy can be made to answer alike: one model per entity and plugin.

The names are Kong's. A model declares the fields and values that are carried over exactly and refuses everything else,
so nothing is dropped silently. A field that allows one value is there so that Kong's default may be written out. A
field whose default in Kong would not be carried over must be given.
"""

import re
from typing import Annotated, Generic, Literal, NotRequired, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from typing_extensions import TypedDict

from kong_envoy.environment import Environment, expanded

EXACT_PATH = re.compile(r"~(/(?:[A-Za-z0-9_/-]|\\.)*)\$")
"""The one form of regular expression that is carried over: a path from its beginning to its end."""
CLAIMS_TEMPLATE = re.compile(
    re.escape('$(shared.authenticated_jwt_token and shared.authenticated_jwt_token:match("%.(.-)%.") or "')
    + r'([^"\\$]*)'
    + re.escape('")')
)
"""The template that stands for the middle part of the token that the plugin jwt has verified, or else for a literal."""
MAX_BUFFERED = 1024 * 1024
"""Bytes of a body of unannounced length that the gateway holds in memory to measure it."""
SIZE_UNITS = {"bytes": 1, "kilobytes": 1024, "megabytes": 1024 * 1024}


def _only(*allowed: object) -> AfterValidator:
    """Refuses other values; the order within a list does not count, so lists are given sorted."""

    def check(value: object) -> object:
        if (sorted(value) if isinstance(value, list) else value) not in allowed:
            raise ValueError(f"only {' or '.join(map(repr, allowed))} is carried over")
        return value

    return AfterValidator(check)


def _path(path: str) -> str:
    if not path.startswith("/") and EXACT_PATH.fullmatch(path) is None:
        raise ValueError("only prefixes and ~EXACT$ are carried over")
    return path


def _not_host(name: str) -> str:
    if name.lower() == "host":
        raise ValueError("Host is not carried over: Kong leaves it alone here")
    return name


def _added_header(header: object, info: ValidationInfo[Environment]) -> dict[str, str]:
    name, colon, value = str(header).partition(":")
    if not (name and colon and value):
        raise ValueError("must have the form name:value")
    if claims := CLAIMS_TEMPLATE.fullmatch(value):
        return {"name": _not_host(name), "claims_or": claims[1]}
    return {"name": _not_host(name), "value": expanded(value, info.context)}


def _check_unique(what: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} {name!r} is there twice")


Text = Annotated[str, Field(min_length=1)]
Texts = list[Text]
Off = Annotated[bool, _only(False)]
On = Annotated[bool, _only(True)]
Zero = Annotated[int, _only(0)]
Positive = Annotated[int, Field(ge=1, le=2**31 - 2)]
Seconds = Annotated[int, Field(ge=1, le=65_535)]
Checks = Annotated[int, Field(ge=1, le=255)]


class Entity(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Tagged(Entity):
    tags: Texts | None = None


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
    key_names: Texts = ["apikey"]
    key_in_header: On = True
    key_in_query: Off
    key_in_body: Off = False
    hide_credentials: Off = False
    run_on_preflight: On = True


class Jwt(Authentication):
    claims_to_verify: Annotated[Texts, _only([], ["exp"])] = []
    header_names: Annotated[Texts, _only(["authorization"])] = ["authorization"]
    uri_param_names: Annotated[Texts, _only([])]
    cookie_names: Annotated[Texts, _only([])] = []
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


HeaderContains = Annotated[Text, Field(pattern=r"^~\*[a-z]+$")]
"""The one form of regular expression that is carried over: a word in small letters, however it is spelled."""
HeaderName = Annotated[Text, AfterValidator(_not_host)]
AddedHeader = Annotated[dict[str, str], BeforeValidator(_added_header)]
Removed = TypedDict("Removed", {"headers": list[HeaderName]}, total=False)
Added = TypedDict("Added", {"headers": list[AddedHeader]}, total=False)


class RequestTransformer(Entity):
    remove: Removed = {}
    add: Added = {}


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
ConsumerPlugin = Annotated[
    RateLimit | Plugin[Literal["request-termination"], RequestTermination], Field(discriminator="name")
]
AnyPlugin = Annotated[
    Plugin[Literal["acl"], Acl]
    | Plugin[Literal["basic-auth"], BasicAuth]
    | Plugin[Literal["correlation-id"], CorrelationId]
    | Plugin[Literal["jwt"], Jwt]
    | Plugin[Literal["key-auth"], KeyAuth]
    | RateLimit
    | Plugin[Literal["request-size-limiting"], RequestSizeLimiting]
    | Plugin[Literal["request-transformer"], RequestTransformer],
    Field(discriminator="name"),
]


class Route(Tagged):
    name: Text
    paths: list[Annotated[Text, AfterValidator(_path)]]
    methods: Texts = []
    headers: dict[HeaderName, Annotated[list[HeaderContains], Field(min_length=1, max_length=1)]] = {}
    protocols: Annotated[Texts, _only(["http", "https"])] = ["http", "https"]
    strip_path: Off
    preserve_host: Off = False
    path_handling: Literal["v0"] = "v0"
    regex_priority: Zero = 0
    plugins: list[AnyPlugin] = []


class Service(Tagged):
    name: Text
    host: Text
    port: Annotated[int, Field(ge=0, le=65_535)] = 80  # Kong takes the ports of the upstream's targets
    protocol: Literal["http"] = "http"
    enabled: On = True
    retries: Annotated[int, Field(ge=0, le=32_767)] = 5
    connect_timeout: Positive = 60_000
    write_timeout: Positive = 60_000
    read_timeout: Positive = 60_000
    routes: list[Route] = []
    plugins: list[AnyPlugin] = []

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.read_timeout != self.write_timeout:
            raise ValueError("write_timeout must equal read_timeout: Envoy has one idle timeout")
        _check_unique(f"service {self.name}: the plugin", [plugin.name for plugin in self.plugins])
        for route in self.routes:
            _check_unique(f"route {route.name}: the plugin", [plugin.name for plugin in route.plugins])
        return self

    def plugins_of(self, route: Route) -> dict[str, AnyPlugin]:
        """The plugins that requests of the route meet, by name; its own come before those of the service."""
        return {plugin.name: plugin for plugin in [*self.plugins, *route.plugins]}


class Target(Tagged):
    target: Annotated[str, Field(pattern=".:.")]
    weight: Seconds = 100


Good = Annotated[list[int], _only([200])]
Bad = Annotated[list[int], _only([404, 429, 500, 501, 502, 503, 504, 505])]
Healthy = TypedDict("Healthy", {"interval": Seconds, "successes": Checks, "http_statuses": Good})


class Unhealthy(Entity):
    interval: Seconds
    http_failures: Checks
    tcp_failures: Checks
    timeouts: Checks
    http_statuses: Bad

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if not self.http_failures == self.tcp_failures == self.timeouts:
            raise ValueError("the three counts of failures must be equal")
        return self


class ActiveChecks(Entity):
    type: Literal["http"] = "http"
    http_path: Text
    timeout: Seconds = 1
    concurrency: Positive = 10  # how many targets Kong checks at once
    healthy: Healthy
    unhealthy: Unhealthy


HealthChecks = TypedDict("HealthChecks", {"active": ActiveChecks, "threshold": NotRequired[Zero]})


class Upstream(Tagged):
    name: Text
    algorithm: Literal["round-robin", "least-connections"] = "round-robin"
    targets: list[Target]
    healthchecks: HealthChecks


AclGroup = TypedDict("AclGroup", {"group": Text, "tags": NotRequired[Texts | None]})
BasicCredential = TypedDict("BasicCredential", {"username": Text, "password": Text})
KeyCredential = TypedDict("KeyCredential", {"id": Text, "key": Text})
JwtSecret = TypedDict("JwtSecret", {"key": Text, "secret": Text, "algorithm": NotRequired[Literal["HS256"]]})
Certificate = TypedDict("Certificate", {"id": Text, "cert": Text, "key": Text, "tags": NotRequired[Texts | None]})
CertificateReference = TypedDict("CertificateReference", {"id": Text})
Sni = TypedDict("Sni", {"name": Literal["*"], "certificate": CertificateReference, "tags": NotRequired[Texts | None]})


class Consumer(Tagged):
    username: Text
    id: Text
    custom_id: Text | None = None
    acls: list[AclGroup] = []
    basicauth_credentials: list[BasicCredential] = []
    keyauth_credentials: list[KeyCredential] = []
    jwt_secrets: list[JwtSecret] = []
    plugins: list[ConsumerPlugin] = []


class KongFile(Entity):
    format_version: Annotated[Literal["3.0"], Field(alias="_format_version")]
    transform: Annotated[On, Field(alias="_transform")] = True
    upstreams: list[Upstream]
    services: list[Service]
    consumers: list[Consumer] = []
    certificates: list[Certificate] = []
    snis: list[Sni] = []

    @property
    def routes(self) -> list[tuple[Service, Route]]:
        """The routes of all services, each with its own."""
        return [(service, route) for service in self.services for route in service.routes]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        owners, upstreams = self.consumers, {upstream.name for upstream in self.upstreams}
        usernames = [owner.username for owner in owners]
        _check_unique("the route", [route.name for _, route in self.routes])
        _check_unique("the consumer", usernames)
        _check_unique("the username", [basic["username"] for owner in owners for basic in owner.basicauth_credentials])
        _check_unique("the key", [key["key"] for owner in owners for key in owner.keyauth_credentials])
        _check_unique("the issuer", [issuer["key"] for owner in owners for issuer in owner.jwt_secrets])
        for owner in owners:
            _check_unique(f"consumer {owner.username}: the plugin", [plugin.name for plugin in owner.plugins])
        for service, route in self.routes:
            if service.host not in upstreams:
                raise ValueError(f"the host {service.host!r} of service {service.name} must be an upstream")
            configs = [plugin.config for plugin in service.plugins_of(route).values()]
            anonymous = {config.anonymous for config in configs if isinstance(config, Authentication)}
            for username in anonymous.difference(usernames):
                raise ValueError(f"there is no consumer {username!r}, whom route {route.name} names as anonymous")
        return self
