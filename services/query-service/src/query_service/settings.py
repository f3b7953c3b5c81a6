"""The settings of an instance, from environment variables that begin with QUERY_SERVICE_."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from statecast_service.kafka import KafkaSettings
from statecast_service.logs import LogLevel
from statecast_service.settings import DescriptorSettings, Port
from statecast_service.tls import PortSettings

SHIPPED_STORES = Path(__file__).with_name("stores.yaml")

NonEmpty = Annotated[str, Field(min_length=1)]
OwnPort = Annotated[int, Field(ge=1, le=65_535)]
"""A port that other processes are configured with, so 0 is not one."""


class Settings(KafkaSettings, PortSettings, DescriptorSettings):
    """Each field is the environment variable of its name in capitals after QUERY_SERVICE_."""

    model_config = SettingsConfigDict(env_prefix="QUERY_SERVICE_", use_attribute_docstrings=True)

    stores: Path = SHIPPED_STORES
    """The stores file: which keyed topics are served, and as what."""
    stores_interval_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 1000
    """How often it is looked at: a change is taken live, or refused in the log, after two looks that see the same."""
    data_directory: Path = Path(".run/query-service")
    """Where the partitions lie on disk; one instance per directory."""
    replicas: Annotated[int, Field(ge=1, le=16)] = 2
    """How many instances hold each partition; the same at all instances."""

    instance: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._:-]{1,200}$")] = None
    """The name of the instance, unique and stable; empty takes host:port."""
    port: OwnPort = 50_051
    """The port of the public QueryService."""
    shard_port: OwnPort = 50_061
    """The port of the internal ShardService."""
    grpc_server: Literal["auto", "native", "grpcio"] = "auto"
    """What serves both: `native` is faster, without TLS; `grpcio` can do all; `auto` is native on ports without TLS."""
    zone: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{0,200}$")] = ""
    """The zone of the instance: replicas of a partition are in as many zones as there are. Empty for none."""
    advertised_host: Annotated[str | None, Field(pattern="^[^|\\s]+$")] = None
    """The host under which others reach this instance; empty takes the host."""
    metrics_host: NonEmpty = "127.0.0.1"
    """Where /metrics, /healthz and /readyz listen."""
    metrics_port: Port = 9103
    """Their port."""

    group_id: NonEmpty = "query-service"
    """The consumer group that all instances join."""
    session_timeout_ms: Annotated[int, Field(ge=1000, le=300_000)] = 6000
    """After how long Kafka drops an instance that has died."""
    membership_interval_ms: Annotated[int, Field(ge=20, le=60_000)] = 250
    """How often the member list is read while the group changes; at rest every five minutes."""
    departed_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """How long instances that left are still asked, after all others."""
    replace_after_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """How long others wait for an instance that left before they copy its partitions; the same at all instances."""

    end_offsets_interval_ms: Annotated[int, Field(ge=10, le=60_000)] = 100
    """How often the ends of the topics are read: the floor of `lag_ms`."""
    caught_up_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 2000
    """A partition is served once its `lag_ms` has been below this."""
    demoted_lag_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 10_000
    """A replica that lags this much more than another is asked after it, until it is CAUGHT_UP_MS behind at most."""
    deletions_s: Annotated[int, Field(ge=1, le=604_800)] = 600
    """How long deletions are remembered at least; of keyed topics, until they are checkpointed too."""
    resume_limit_s: Annotated[int, Field(ge=1)] = 43_200
    """Rows that were last current longer ago are rebuilt, and after `delete.retention.ms` of their topic."""
    released_s: Annotated[int, Field(ge=1, le=2_592_000)] = 600
    """How long a partition that has moved away stays on disk: longer than a restart takes."""
    set_aside_s: Annotated[int, Field(ge=1, le=31_536_000)] = 604_800
    """How long a directory that was set aside stays; of each partition, only the last one does."""

    tls_certificate: Path | None = None
    """The certificate of the public port, as PEM with its chain; empty serves without TLS."""
    tls_key: Path | None = None
    """Its private key, as PEM without a password."""
    tls_client_ca: Path | None = None
    """Whose certificates callers must show, as PEM; empty asks for none."""
    shard_tls_certificate: Path | None = None
    """The certificate that the instance shows its peers, as server and client; empty goes without TLS."""
    shard_tls_key: Path | None = None
    """Its private key, as PEM without a password."""
    shard_tls_ca: Path | None = None
    """Whose certificates the peers must show, as PEM: a CA for instances alone."""

    call_timeout_ms: Annotated[int, Field(ge=1, le=600_000)] = 5000
    """The deadline of a call that brings none."""
    max_call_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 30_000
    """The longest that a call is worked on beside its `max_wait`, whatever deadline it brings."""
    peer_timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = 500
    """How long one replica gets while others are left."""
    peer_backoff_ms: Annotated[int, Field(ge=1, le=60_000)] = 1000
    """How long a replica that failed is asked after the others."""
    hedge_after_ms: Annotated[float, Field(ge=0, le=60_000)] = 20.0
    """The least time after which a slow replica's call also goes to the next; 0 never does so."""
    hedge_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The most of all forwarded calls that go to two."""
    max_batch_keys: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """The most keys of one batch."""
    max_page_size: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """The most states of one page."""
    default_page_size: Annotated[int, Field(ge=1, le=100_000)] = 100
    """The states of a page whose request names no size."""
    max_wait_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 60_000
    """The longest `max_wait` of a batch."""
    recent_changes: Annotated[int, Field(ge=0, le=10_000_000)] = 100_000
    """How many changed rows the instance remembers in memory (0.5 KB each), to tell what is new in a range."""
    max_request_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = 4_194_304
    """The largest request."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = 16_777_216
    """The largest answer of a batch, to callers whose `max_response_bytes` takes it; others get 4 MiB at most."""
    max_concurrent_calls: Annotated[int, Field(ge=1)] = 4096
    """Calls in work; more are refused at once."""
    max_in_flight_mb: Annotated[int, Field(ge=1, le=1_048_576)] = 256
    """What requests in work and answers on their way may hold; more calls are refused."""

    seed_replicas: bool = True
    """Takes a partition that is not on disk from a peer that serves it; else, and without one, from the topic."""
    seed_mb_per_s: Annotated[float, Field(ge=1, le=100_000)] = 100.0
    """How fast the instance gives partitions to peers and backups, all together."""
    max_seeds: Annotated[int, Field(ge=1, le=1000)] = 2
    """How many partitions the instance gives at a time, and how many it takes."""

    block_cache_mb: Annotated[int, Field(ge=1, le=1_048_576)] = 128
    """RocksDB's block cache, shared by all partitions."""
    write_buffers_mb: Annotated[int, Field(ge=8, le=1_048_576)] = 128
    """RocksDB's write buffers, shared likewise."""
    drain_s: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """The longest that SIGTERM waits for peers to take over."""
    log_level: LogLevel = "info"
    """The least that is logged."""

    @model_validator(mode="after")
    def _check_pairs(self) -> Self:
        pairs = (
            ("default_page_size", "max_page_size"),
            ("call_timeout_ms", "max_call_ms"),
            ("caught_up_ms", "demoted_lag_ms"),
        )
        problems = [
            f"{self.variable(lower)} is above {self.variable(upper)}: lower it"
            for lower, upper in pairs
            if getattr(self, lower) > getattr(self, upper)
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def instance_name(self) -> str:
        return self.instance or self.address

    @property
    def address(self) -> str:
        """Where others reach the public service."""
        return f"{self.advertised_host or self.host}:{self.port}"

    @property
    def shard_address(self) -> str:
        """Where other instances reach the internal service."""
        return f"{self.advertised_host or self.host}:{self.shard_port}"
