"""The part of Kong's declarative file that Envoy can answer alike: one model per entity.

The names are Kong's. A model declares the fields and values that are carried over exactly and refuses everything else,
so nothing is dropped silently. A field that allows one value lets the file write out Kong's default. A field is
required if its default in Kong cannot be carried over.
"""

from typing import Annotated, Literal, NotRequired, Self

from pydantic import Discriminator, Field, Tag, model_validator
from typing_extensions import TypedDict, override

from kong_envoy.fields import (
    Checks,
    Entity,
    HeaderContains,
    HeaderName,
    Off,
    On,
    Path,
    Positive,
    Seconds,
    Tagged,
    Text,
    Texts,
    Zero,
    check_unique,
    only,
)
from kong_envoy.plugins import AnyPlugin, Authentication, ConsumerPlugin, GlobalPlugin


class Route(Tagged):
    name: Text
    paths: list[Path]
    methods: Texts = Field([])
    headers: dict[HeaderName, Annotated[list[HeaderContains], Field(min_length=1, max_length=1)]] = Field({})
    protocols: Annotated[Texts, only(["http", "https"], ["grpcs"])] = Field(["http", "https"])
    strip_path: Off
    preserve_host: Off = False
    path_handling: Literal["v0"] = "v0"
    regex_priority: Zero = 0
    plugins: list[AnyPlugin] = Field([])

    @property
    def is_grpc(self) -> bool:
        """Whether it takes gRPC, over TLS only."""
        return self.protocols == ["grpcs"]


class Service(Tagged):
    name: Text
    host: Text
    port: Annotated[int, Field(ge=0, le=65_535)] = 80  # Kong takes the ports of the upstream's targets
    protocol: Literal["http", "grpc"] = "http"
    enabled: On = True
    retries: Annotated[int, Field(ge=0, le=32_767)] = 5
    connect_timeout: Positive = 60_000
    write_timeout: Positive = 60_000
    read_timeout: Positive = 60_000
    routes: list[Route] = Field([])
    plugins: list[AnyPlugin] = Field([])

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.read_timeout != self.write_timeout:
            raise ValueError("write_timeout must equal read_timeout: Envoy has one idle timeout")
        for route in self.routes:
            if route.is_grpc != (self.protocol == "grpc"):
                raise ValueError(f"route {route.name}: only the routes of a service with protocol grpc take grpcs")
        check_unique(f"service {self.name}: the plugin", [plugin.name for plugin in self.plugins])
        for route in self.routes:
            check_unique(f"route {route.name}: the plugin", [plugin.name for plugin in route.plugins])
        return self

    def plugins_of(self, route: Route) -> dict[str, AnyPlugin]:
        """Returns the plugins that requests of the route meet, by name; its own come before those of the service."""
        return {plugin.name: plugin for plugin in [*self.plugins, *route.plugins]}


class Target(Tagged):
    target: Annotated[str, Field(pattern=".:.")]
    weight: Seconds = 100


Good = Annotated[list[int], only([200])]
Bad = Annotated[list[int], only([404, 429, 500, 501, 502, 503, 504, 505])]
Healthy = TypedDict("Healthy", {"interval": Seconds, "successes": Checks, "http_statuses": Good})
Connected = TypedDict("Connected", {"interval": Seconds, "successes": Checks})


class Unconnected(Entity):
    interval: Seconds
    tcp_failures: Checks
    timeouts: Checks

    @model_validator(mode="after")
    def _one_count(self) -> Self:
        if len(self._counts()) > 1:
            raise ValueError("the counts of failures must be equal")
        return self

    def _counts(self) -> set[int]:
        return {self.tcp_failures, self.timeouts}


class Unhealthy(Unconnected):
    http_failures: Checks
    http_statuses: Bad

    @override
    def _counts(self) -> set[int]:
        return super()._counts() | {self.http_failures}


class Checked(Entity):
    timeout: Seconds = 1
    concurrency: Positive = 10  # how many targets Kong checks at once


class HttpChecks(Checked):
    type: Literal["http"] = "http"
    http_path: Text
    healthy: Healthy
    unhealthy: Unhealthy


class TcpChecks(Checked):
    """A target is healthy if it accepts a connection."""

    type: Literal["tcp"]
    healthy: Connected
    unhealthy: Unconnected


def _type_of(checks: object) -> str:
    return str(checks.get("type", "http")) if isinstance(checks, dict) else "http"


ActiveChecks = Annotated[Annotated[HttpChecks, Tag("http")] | Annotated[TcpChecks, Tag("tcp")], Discriminator(_type_of)]
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
    acls: list[AclGroup] = Field([])
    basicauth_credentials: list[BasicCredential] = Field([])
    keyauth_credentials: list[KeyCredential] = Field([])
    jwt_secrets: list[JwtSecret] = Field([])
    plugins: list[ConsumerPlugin] = Field([])


class KongFile(Entity):
    format_version: Annotated[Literal["3.0"], Field(alias="_format_version")]
    transform: Annotated[On, Field(alias="_transform")] = True
    upstreams: list[Upstream]
    services: list[Service]
    consumers: list[Consumer] = Field([])
    certificates: list[Certificate] = Field([])
    snis: list[Sni] = Field([])
    plugins: list[GlobalPlugin] = Field([])

    @property
    def routes(self) -> list[tuple[Service, Route]]:
        """The routes of all services, each with its own."""
        return [(service, route) for service in self.services for route in service.routes]

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        owners, upstreams = self.consumers, {upstream.name for upstream in self.upstreams}
        usernames = [owner.username for owner in owners]
        check_unique("the plugin", [plugin.name for plugin in self.plugins])
        check_unique("the route", [route.name for _, route in self.routes])
        check_unique("the consumer", usernames)
        check_unique("the username", [basic["username"] for owner in owners for basic in owner.basicauth_credentials])
        check_unique("the key", [key["key"] for owner in owners for key in owner.keyauth_credentials])
        check_unique("the issuer", [issuer["key"] for owner in owners for issuer in owner.jwt_secrets])
        for owner in owners:
            check_unique(f"consumer {owner.username}: the plugin", [plugin.name for plugin in owner.plugins])
        for service, route in self.routes:
            if service.host not in upstreams:
                raise ValueError(f"the host {service.host!r} of service {service.name} must be an upstream")
            configs = [plugin.config for plugin in service.plugins_of(route).values()]
            anonymous = {config.anonymous for config in configs if isinstance(config, Authentication)}
            for username in anonymous.difference(usernames):
                raise ValueError(f"there is no consumer {username!r}, whom route {route.name} names as anonymous")
        return self
