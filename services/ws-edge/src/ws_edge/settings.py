"""The settings of an edge, read from environment variables `WS_EDGE_…`."""

import re
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import AfterValidator, BeforeValidator, DirectoryPath, Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from statecast_service.kafka import KafkaSettings
from statecast_service.settings import DescriptorSettings, Port
from statecast_service.tls import PortSettings, is_loopback
from ws_edge.auth.admission import ANY_ORIGIN

Item = TypeVar("Item")
MAX_INTERVAL_MS = 60_000
"""The longest time between two frames of a place; a longer request gets this."""
MIN_SECRET_LENGTH = 8
LONG_SECRET_BYTES = 32
ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")


def _split(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _address(value: str) -> str:
    host, _, port = value.rpartition(":")
    if not host or not port.isdigit():
        raise ValueError(f"{value!r} is not host:port")
    return value


def _origin(value: str) -> str:
    origin = value.lower()
    if origin != ANY_ORIGIN and ORIGIN.fullmatch(origin) is None:
        raise ValueError(f"{origin!r} is not an origin like https://app.example.org, without a path")
    return origin


CommaSeparated = Annotated[tuple[Item, ...], NoDecode, BeforeValidator(_split)]


class Settings(KafkaSettings, PortSettings, DescriptorSettings):
    """The settings of one edge. The defaults run on one machine; only the gateway's secret has none."""

    model_config = SettingsConfigDict(env_prefix="WS_EDGE_", use_attribute_docstrings=True)

    port: Port = 8080
    """Port to listen on; 0 takes a free one and logs it."""
    instance: str = ""
    """Name of this edge in logs; empty takes host:port."""
    query_addresses: CommaSeparated[Annotated[str, AfterValidator(_address)]] = Field(
        ("127.0.0.1:50051",), min_length=1
    )
    """Addresses of the query service as host:port, separated by commas."""
    gateway_secret: SecretStr
    """Secret that the gateway sends as X-Gateway-Secret; with commas: the first one signs, all are accepted."""

    domains: DirectoryPath | None = None
    """Directory of the domains, from which each `page` subdirectory is served; empty serves none."""

    tls_certificate: Path | None = None
    """Certificate of the port, as PEM with its chain; empty serves without TLS."""
    tls_key: Path | None = None
    """Private key of that certificate, as PEM without a password."""
    tls_client_ca: Path | None = None
    """CA of the certificates that callers must show, as PEM; the gateway proves itself by its secret."""
    query_tls_ca: Path | None = None
    """CA of the query service's certificates, as PEM; empty connects without TLS."""
    query_tls_certificate: Path | None = None
    """Client certificate for the query service, as PEM; empty shows none."""
    query_tls_key: Path | None = None
    """Private key of that certificate, as PEM without a password."""

    kafka_bootstrap: str = ""
    """Kafka brokers as host:port, separated by commas; empty turns channels and revocation off."""
    topic_prefix: str = Field("", pattern=r"^[a-zA-Z0-9._-]*$")
    """Prefix of the topics of channels and revocations, as the query service's stores file says."""
    kafka_timeout_ms: int = Field(5000, ge=100)
    """Longest time for Kafka to acknowledge a record."""

    default_interval_ms: int = Field(1000, ge=1, le=MAX_INTERVAL_MS)
    """Time between two frames of a place when neither the client nor the store sets one."""
    min_interval_ms: int = Field(100, ge=10)
    """Shortest interval; a shorter request gets this."""
    tick_ms: int = Field(25, ge=5, le=1000)
    """Resolution of the schedule: frames may be early by this much."""

    channel_lifetime_s: float = Field(86_400, gt=0)
    """Lifetime of a channel; must be shorter than the retention of its topic."""
    consumer_channels_per_hour: int = Field(1000, ge=1)
    """Channels that one consumer may create per hour; all of them may be created at once."""
    max_channel_watches: int = Field(200, ge=1, le=1000)
    """Watches of one channel."""

    max_sockets: int = Field(15_000, ge=1)
    """Open sockets of this edge; more are refused with 503."""
    max_watches: int = Field(1000, ge=1)
    """Watches of one socket."""
    max_places: int = Field(500, ge=1)
    """Most ranges and keys that the steps and channels of one socket may add."""
    consumer_sockets: int = Field(1000, ge=1)
    """Open sockets of one consumer."""
    consumer_sockets_per_s: float = Field(100.0, gt=0)
    """Sockets that one consumer may open per second, dropped ones included; 20 s' worth may be opened at once."""
    consumer_rows: int = Field(20_000, ge=1)
    """Rows that one consumer may watch: the sum of limits, plus one per read of a place a second beyond the first."""
    consumer_frames_per_s: int = Field(1000, ge=1)
    """Frames per second read from one consumer; a ping or a part counts one, a message two plus its KiB."""
    address_sockets: int = Field(5000, ge=1)
    """Open sockets of one address, which may stand for a whole network."""
    address_sockets_per_s: float = Field(500.0, gt=0)
    """Sockets that one address may open per second."""
    address_rows: int = Field(200_000, ge=1)
    """Rows that the consumers of one address may watch."""
    address_frames_per_s: int = Field(10_000, ge=1)
    """Frames per second read from one address."""
    frames_burst_s: float = Field(20.0, ge=1)
    """Seconds' worth of frames that may arrive at once."""
    origins: CommaSeparated[Annotated[str, AfterValidator(_origin)]] = ()
    """Sites on which browsers may open sockets, separated by commas; empty: the same host only; `*`: all."""
    sockets_per_s: float = Field(2500.0, gt=0)
    """Most sockets opened per second; more wait in line, and are refused with 503 when that would take 5 s."""
    send_buffer_bytes: int = Field(65_536, ge=4096)
    """Target for the bytes that the edge and the kernel each buffer for a client."""
    max_frame_bytes: int = Field(65_536, ge=128)
    """Largest frame of a client; a larger one closes the socket with 1009."""
    max_sent_frame_bytes: int = Field(1_000_000, ge=131_072)
    """Largest frame sent to clients, the default limit of iOS; a row beyond it is an error of its key."""
    stall_timeout_s: float = Field(20.0, gt=0)
    """Time for which a client may read next to nothing before its socket is reset."""
    max_access_s: float = Field(86_400.0, gt=0)
    """Longest access of a socket, less up to a fifth; ends sooner with the credential, and can be renewed."""
    ping_interval_s: float = Field(25.0, gt=0)
    """Interval of pings on an idle socket."""
    ping_timeout_s: float = Field(20.0, gt=0)
    """Time to wait for a pong before the socket is closed."""

    query_timeout_ms: int = Field(1000, ge=10)
    """Time for one instance of the query service to answer."""
    shard_refresh_ms: int = Field(1000, ge=100)
    """Interval of reads of stores and shard map while all is well, and of checks of mounted messages."""
    stale_after_ms: int = Field(5000, ge=1)
    """Lag from which pings and answers say how stale rows may be."""
    revocation_lag_ms: int = Field(300_000, ge=1000)
    """Longest lag of revocations; beyond it, new sockets are refused."""
    revocation_timeout_ms: int = Field(3000, ge=1)
    """Time for which a new socket waits to learn whether its consumer's access was revoked."""
    batch_keys: int = Field(1000, ge=1)
    """Keys in one call; at most the query service's limit."""
    page_size: int = Field(100, ge=1, le=1000)
    """Rows of a range, read or watched, when the request sets no limit."""
    public_max_age_s: int = Field(5, ge=0)
    """Time for which caches may reuse answers about stores for everyone; 0 leaves every answer to its caller."""
    public_stale_s: int = Field(30, ge=0)
    """Further time for which they may reuse one while they fetch a newer one."""

    drain_notice_ms: int = Field(3000, ge=0)
    """Time for which sockets stay open after SIGTERM, so the gateway can notice."""
    drain_window_ms: int = Field(20_000, ge=0)
    """Longest time over which sockets then close, as fast as another edge opens them."""

    @property
    def gateway_secrets(self) -> tuple[str, ...]:
        """The secrets that prove the gateway, the one that signs first."""
        return tuple(secret.strip() for secret in self.gateway_secret.get_secret_value().split(","))

    @field_validator("gateway_secret")
    @classmethod
    def _check_secrets(cls, value: SecretStr) -> SecretStr:
        if any(len(secret.strip()) < MIN_SECRET_LENGTH for secret in value.get_secret_value().split(",")):
            raise ValueError(f"each secret must have at least {MIN_SECRET_LENGTH} characters")
        return value

    @model_validator(mode="after")
    def _check_secrets_of_others(self) -> Self:
        weak = any(len(each.encode()) < LONG_SECRET_BYTES or "demo-" in each for each in self.gateway_secrets)
        if weak and not is_loopback(self.host):
            secret, host = self.variable("gateway_secret"), f"{self.variable('host')}={self.host}"
            raise ValueError(f"{secret}: with {host} each must be your own, and have {LONG_SECRET_BYTES} bytes or more")
        return self

    @model_validator(mode="after")
    def _check_intervals(self) -> Self:
        if self.min_interval_ms > self.default_interval_ms:
            names = map(self.variable, ("min_interval_ms", "default_interval_ms"))
            raise ValueError(f"{' <= '.join(names)} must hold")
        return self
