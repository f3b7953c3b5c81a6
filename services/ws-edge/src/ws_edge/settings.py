"""Everything that can be set about an edge, read from environment variables `WS_EDGE_…`."""

import os
import re
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ws_edge.access.origins import ANY
from ws_edge.errors import SettingsError
from ws_edge.stores import SHIPPED

PREFIX = "WS_EDGE_"
SHORTEST_SECRET = 8
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return PREFIX + name.upper()


class Settings(BaseSettings):
    """The settings of one edge. The defaults run on one machine; only the gateway's secret has none."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    host: str = Field(default="127.0.0.1", description="The address to listen on.")
    port: int = Field(
        default=8080, ge=0, le=65535, description="The port to listen on; 0 takes a free one and logs it."
    )
    instance: str = Field(default="", description="The name of this edge in logs; empty takes host:port.")
    query_addresses: Annotated[tuple[str, ...], NoDecode] = Field(
        default=("127.0.0.1:50051",),
        min_length=1,
        description="Addresses of the query service as host:port, with commas.",
    )
    gateway_secret: SecretStr = Field(
        description="What the gateway sends as X-Gateway-Secret; with commas: the first signs, all are accepted."
    )
    tls_certificate: Path | None = Field(
        default=None, description="The certificate of the port, as PEM with its chain; empty serves without TLS."
    )
    tls_key: Path | None = Field(default=None, description="Its private key, as PEM without a password.")
    tls_client_ca: Path | None = Field(
        default=None,
        description="Whose certificates callers must show, as PEM: a CA for the gateway alone, as its proof.",
    )
    query_tls_ca: Path | None = Field(
        default=None, description="Whose certificates the query service shows, as PEM; empty goes without TLS."
    )
    query_tls_certificate: Path | None = Field(
        default=None, description="The certificate that the query service asks for, as PEM; empty shows none."
    )
    query_tls_key: Path | None = Field(default=None, description="Its private key, as PEM without a password.")
    ticket_lifetime_s: float = Field(
        default=60.0, gt=0, description="How long a ticket of POST /v1/tickets may be used."
    )
    kafka_bootstrap: str = Field(
        default="",
        description="Kafka brokers as host:port, with commas; empty turns channels and revocation off.",
    )
    kafka_timeout_ms: int = Field(
        default=5000, ge=100, description="How long Kafka may take to acknowledge what an edge writes."
    )
    stores: Path = Field(default=SHIPPED, description="The file with the stores and who may see their rows.")

    default_interval_ms: int = Field(
        default=1000, ge=1, description="Time between two frames of a key when none is asked for."
    )
    min_interval_ms: int = Field(default=100, ge=10, description="The shortest such time; shorter requests get this.")
    max_interval_ms: int = Field(default=60_000, ge=1, description="The longest such time; longer requests get this.")
    live_wait_ms: int = Field(
        default=2000, ge=10, le=60_000, description="How long a long poll for the keys with interval 0 is held."
    )
    live_keys_per_s: int = Field(
        default=100_000, ge=1, description="Keys with interval 0 that are asked for per second, at the most."
    )
    tick_ms: int = Field(
        default=25, ge=5, le=1000, description="How finely time is cut: frames may be early by so much."
    )
    unavailable_after_ms: int = Field(
        default=3000, ge=1, description="How late a first answer is before the client is told."
    )

    channel_lifetime_s: float = Field(
        default=86_400, gt=0, description="How long a channel lives; shorter than its topic keeps records."
    )
    consumer_channels_per_hour: int = Field(
        default=1000, ge=1, description="Channels that one consumer may create in an hour; so many may come at once."
    )
    max_channel_subscriptions: int = Field(
        default=200, ge=1, le=1000, description="Subscriptions that one channel may have."
    )

    max_sockets: int = Field(default=15_000, ge=1, description="Open sockets of this edge; more are refused with 503.")
    max_subscriptions: int = Field(default=1000, ge=1, description="Keys that one socket may watch.")
    max_ranges: int = Field(default=20, ge=1, description="Ranges that one socket may watch, and one channel may have.")
    max_members: int = Field(
        default=1000, ge=1, le=1000, description="Members of a range that is watched; larger limits get this."
    )
    max_replies: int = Field(
        default=256, ge=1, description="Unsent replies at which a socket's requests are not read on."
    )
    consumer_sockets: int = Field(default=1000, ge=1, description="Open sockets of one consumer.")
    consumer_subscriptions: int = Field(
        default=10_000, ge=1, description="Subscriptions of one consumer, over all of its sockets."
    )
    consumer_frames_per_s: int = Field(
        default=1000, ge=1, description="Frames that one consumer may send in a second, over all of its sockets."
    )
    address_sockets: int = Field(
        default=5000, ge=1, description="Open sockets from one address, behind which a whole network may be."
    )
    address_subscriptions: int = Field(default=50_000, ge=1, description="Subscriptions from one address.")
    address_frames_per_s: int = Field(
        default=5000, ge=1, description="Frames that may come from one address in a second."
    )
    frames_burst_s: float = Field(
        default=5.0, ge=1, description="So many seconds' worth of frames may come at once, for example to resume."
    )
    origins: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(),
        description="Sites on which browsers may open sockets, with commas; empty: the same host only; `*`: all.",
    )
    sockets_per_s: float = Field(
        default=1000.0, gt=0, description="Sockets that are opened in a second; more are told to come back."
    )
    slow_start_s: float = Field(
        default=10.0, ge=0, description="How long after its first socket an edge takes them at its full pace."
    )
    max_outbox_bytes: int = Field(
        default=8_388_608, ge=1024, description="Bytes that may wait for one client; more close its socket with 4408."
    )
    send_buffer_bytes: int = Field(
        default=65_536,
        ge=4096,
        description="What edge and kernel each hold for a client on top of that, as a target.",
    )
    max_frame_bytes: int = Field(
        default=16_384, ge=128, description="Size of a client's frame; larger ones close with 1009."
    )
    stall_timeout_s: float = Field(
        default=20.0, gt=0, description="How long a client may read nothing before it is cut off."
    )
    ping_interval_s: float = Field(default=25.0, gt=0, description="How often an idle socket is pinged.")
    ping_timeout_s: float = Field(
        default=20.0, gt=0, description="How long a pong may take before the socket is closed."
    )

    query_timeout_ms: int = Field(
        default=1000, ge=10, description="How long one instance of the query service may take."
    )
    query_backoff_ms: int = Field(default=1000, ge=0, description="How long an instance that failed is asked last.")
    shard_refresh_ms: int = Field(
        default=5000, ge=100, description="How often the shard map is asked for while all is well."
    )
    batch_keys: int = Field(
        default=1000, ge=1, description="Keys in one call; not above the query service's own limit."
    )
    page_size: int = Field(
        default=100, ge=1, le=1000, description="Rows of a range when no limit is asked for, read or watched."
    )

    drain_notice_ms: int = Field(
        default=3000, ge=0, description="How long sockets stay when the edge is stopped, until the gateway has noticed."
    )
    drain_window_ms: int = Field(default=2000, ge=0, description="Over how long sockets are closed after that.")

    @property
    def gateway_secrets(self) -> tuple[str, ...]:
        """The secrets that prove the gateway, the one that signs first."""
        return tuple(secret.strip() for secret in self.gateway_secret.get_secret_value().split(","))

    @field_validator("gateway_secret")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        if any(len(secret.strip()) < SHORTEST_SECRET for secret in value.get_secret_value().split(",")):
            raise ValueError(f"each secret must have at least {SHORTEST_SECRET} characters")
        return value

    @field_validator("origins", mode="before")
    @classmethod
    def _split_origins(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        origins = [origin.strip().lower() for origin in value.split(",") if origin.strip()]
        for origin in origins:
            if origin != ANY and ORIGIN.fullmatch(origin) is None:
                raise ValueError(f"{origin!r} is not an origin like https://app.example.org, without a path")
        return origins

    @field_validator("query_addresses", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        addresses = [address.strip() for address in value.split(",") if address.strip()]
        for address in addresses:
            host, _, port = address.rpartition(":")
            if not host or not port.isdigit():
                raise ValueError(f"{address!r} is not host:port")
        return addresses

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.min_interval_ms <= self.default_interval_ms <= self.max_interval_ms:
            raise ValueError("min_interval_ms <= default_interval_ms <= max_interval_ms must hold")
        return self


def read() -> Settings:
    """Reads the settings; raises SettingsError that names the first wrong variable and says what is wrong with it."""
    try:
        return Settings()  # type: ignore[call-arg]  # the environment gives the secret
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if not first["loc"]:
            raise SettingsError(f"{PREFIX}DEFAULT_INTERVAL_MS: {first['msg']}") from error
        name = variable(str(first["loc"][0]))
        got = "" if first["type"] == "missing" or "SECRET" in name else f" (got {os.environ.get(name)!r})"
        raise SettingsError(f"{name}: {first['msg']}{got}") from error
