"""The settings of an instance, from environment variables that begin with QUERY_SERVICE_."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from query_service.errors import SettingsError

PREFIX = "QUERY_SERVICE_"
SHIPPED_STORES = Path(__file__).with_name("stores.yaml")

Name = r"^[A-Za-z0-9._:-]{1,200}$"


class Settings(BaseSettings):
    """Each field is the environment variable of its name in capitals after QUERY_SERVICE_."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    kafka_bootstrap: str = Field(
        default="127.0.0.1:9092", min_length=1, description="Kafka brokers, as host:port,host:port."
    )
    stores: Path = Field(
        default=SHIPPED_STORES, description="The stores file: which keyed topics are served, and as what."
    )
    data_directory: Path = Field(
        default=Path(".run/query-service"), description="Where the partitions lie on disk; one instance per directory."
    )
    replicas: int = Field(
        default=2, ge=1, le=16, description="How many instances hold each partition. The same at all."
    )

    instance: str | None = Field(
        default=None, pattern=Name, description="The name of the instance, unique and stable; empty takes host:port."
    )
    host: str = Field(
        default="127.0.0.1", min_length=1, description="Where the public and the internal service listen."
    )
    port: int = Field(default=50051, ge=1, le=65_535, description="The port of the public QueryService.")
    shard_port: int = Field(default=50061, ge=1, le=65_535, description="The port of the internal ShardService.")
    advertised_host: str | None = Field(
        default=None,
        pattern=r"^[^|\s]+$",
        description="The host under which others reach this instance; empty takes the host.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="Where /metrics, /healthz and /readyz listen."
    )
    metrics_port: int = Field(default=9103, ge=1, le=65_535, description="Their port.")

    group_id: str = Field(
        default="query-service", min_length=1, description="The consumer group that all instances join."
    )
    session_timeout_ms: int = Field(
        default=6000, ge=1000, le=300_000, description="After how long Kafka drops an instance that has died."
    )
    membership_interval_ms: int = Field(default=250, ge=20, le=60_000, description="How often the member list is read.")
    departed_s: float = Field(
        default=30.0, ge=0, le=3600, description="How long instances that left are still asked, as the last."
    )

    end_offsets_interval_ms: int = Field(
        default=100, ge=10, le=60_000, description="How often the ends of the topics are read: the floor of `lag_ms`."
    )
    caught_up_ms: int = Field(
        default=2000, ge=100, le=3_600_000, description="A partition is served once its `lag_ms` has been below this."
    )
    deletions_s: int = Field(
        default=600,
        ge=1,
        le=604_800,
        description="How long deletions are remembered: longer than any replay of the processor.",
    )
    resume_limit_s: int = Field(
        default=43_200,
        ge=1,
        description="Older data on disk is rebuilt; keep it below `delete.retention.ms` of the topics.",
    )

    tls_certificate: Path | None = Field(
        default=None, description="The certificate of the public port, as PEM with its chain; empty serves without TLS."
    )
    tls_key: Path | None = Field(default=None, description="Its private key, as PEM without a password.")
    tls_client_ca: Path | None = Field(
        default=None, description="Whose certificates callers must show, as PEM; empty asks for none."
    )
    shard_tls_certificate: Path | None = Field(
        default=None,
        description="The certificate that the instance shows its peers, as server and client; empty goes without TLS.",
    )
    shard_tls_key: Path | None = Field(default=None, description="Its private key, as PEM without a password.")
    shard_tls_ca: Path | None = Field(
        default=None, description="Whose certificates the peers must show, as PEM: a CA for instances alone."
    )

    call_timeout_ms: int = Field(default=5000, ge=1, le=600_000, description="The deadline of a call that brings none.")
    max_call_ms: int = Field(
        default=30_000,
        ge=1,
        le=3_600_000,
        description="The longest that a call is worked on beside its `max_wait`, whatever deadline it brings.",
    )
    peer_timeout_ms: int = Field(
        default=500, ge=1, le=60_000, description="How long one replica gets while others are left."
    )
    peer_backoff_ms: int = Field(
        default=1000, ge=1, le=60_000, description="How long a replica that failed is asked last."
    )
    hedge_after_ms: float = Field(
        default=20.0,
        ge=0,
        le=60_000,
        description="The least time after which a slow replica's call also goes to the next; 0 never does so.",
    )
    hedge_share: float = Field(default=0.1, ge=0, le=1, description="The most of all forwarded calls that go to two.")
    max_batch_keys: int = Field(default=10_000, ge=1, le=1_000_000, description="The most keys of one batch.")
    max_page_size: int = Field(default=1000, ge=1, le=100_000, description="The most states of one page.")
    default_page_size: int = Field(
        default=100, ge=1, le=100_000, description="The states of a page whose size is not given."
    )
    max_wait_ms: int = Field(default=60_000, ge=0, le=3_600_000, description="The longest `max_wait` of a batch.")
    recent_changes: int = Field(
        default=10_000,
        ge=0,
        le=10_000_000,
        description="How many changed rows each partition remembers in memory, to tell what is new in a range.",
    )
    max_request_bytes: int = Field(default=4_194_304, ge=1024, le=1_073_741_824, description="The largest request.")
    max_answer_bytes: int = Field(
        default=16_777_216, ge=1024, le=1_073_741_824, description="The largest answer of a batch."
    )
    max_concurrent_calls: int = Field(default=4096, ge=1, description="Calls in work; more are refused at once.")
    max_in_flight_mb: int = Field(
        default=256,
        ge=1,
        le=1_048_576,
        description="What requests in work and answers on their way may hold; more calls are refused.",
    )

    block_cache_mb: int = Field(
        default=128, ge=1, le=1_048_576, description="RocksDB's block cache, shared by all partitions."
    )
    write_buffers_mb: int = Field(
        default=128, ge=8, le=1_048_576, description="RocksDB's write buffers, shared likewise."
    )
    drain_s: float = Field(
        default=5.0, ge=0, le=3600, description="The longest that SIGTERM waits for peers to take over."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is logged."
    )

    @property
    def instance_name(self) -> str:
        """The name of the instance."""
        return self.instance or self.address

    @property
    def address(self) -> str:
        """Where others reach the public service."""
        return f"{self.advertised_host or self.host}:{self.port}"

    @property
    def shard_address(self) -> str:
        """Where other instances reach the internal service."""
        return f"{self.advertised_host or self.host}:{self.shard_port}"


def load_settings() -> Settings:
    """Reads the environment. Raises SettingsError with one line that names every wrong variable."""
    try:
        settings = Settings()
    except ValidationError as error:
        complaints = [f"{variable(str(each['loc'][0]))}={each['input']!r}: {each['msg']}" for each in error.errors()]
        raise SettingsError("; ".join(complaints)) from error
    if settings.default_page_size > settings.max_page_size:
        raise SettingsError(f"{variable('default_page_size')} is above {variable('max_page_size')}: lower it")
    if settings.call_timeout_ms > settings.max_call_ms:
        raise SettingsError(f"{variable('call_timeout_ms')} is above {variable('max_call_ms')}: lower it")
    return settings


def variable(field: str) -> str:
    """Returns the environment variable of a field."""
    return f"{PREFIX}{field.upper()}"


def describe_settings() -> str:
    """Returns a paragraph for each variable, for `--help`."""
    return "\n".join(
        f"  {variable(name)} [{field.default if field.default is not None else ''}]\n      {field.description}"
        for name, field in Settings.model_fields.items()
    )
