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
"""A port in the configuration of other processes, so never 0."""


class Settings(KafkaSettings, PortSettings, DescriptorSettings):
    """Each field is the environment variable of its name in capitals after QUERY_SERVICE_."""

    model_config = SettingsConfigDict(env_prefix="QUERY_SERVICE_", use_attribute_docstrings=True)

    stores: Path = SHIPPED_STORES
    """The stores file, which defines the stores and their topics."""
    stores_interval_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 1000
    """Interval of checks of that file: two equal reads apply a change live, or the log says why it is refused."""
    data_directory: Path = Path(".run/query-service")
    """The directory of the partitions on disk; one instance per directory."""
    replicas: Annotated[int, Field(ge=1, le=16)] = 2
    """The number of instances that hold each partition; the same at all instances."""

    instance: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9._:-]{1,200}$")] = None
    """The name of the instance, unique and stable; empty takes host:port."""
    port: OwnPort = 50_051
    """The port of the public QueryService."""
    shard_port: OwnPort = 50_061
    """The port of the internal ShardService."""
    grpc_server: Literal["auto", "native", "grpcio"] = "auto"
    """The gRPC server: `native` is faster, without TLS; `grpcio` can do all; `auto` uses native without TLS."""
    zone: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:-]{0,200}$")] = ""
    """The zone of the instance, or empty at all: replicas of a partition spread over as many zones as possible."""
    advertised_host: Annotated[str | None, Field(pattern="^[^|\\s]+$")] = None
    """The host at which others reach this instance; empty takes the host."""
    metrics_host: NonEmpty = "127.0.0.1"
    """The host for /metrics, /healthz and /readyz."""
    metrics_port: Port = 9103
    """The port for /metrics, /healthz and /readyz."""

    group_id: NonEmpty = "query-service"
    """The consumer group that all instances join."""
    session_timeout_ms: Annotated[int, Field(ge=1000, le=300_000)] = 6000
    """The time after which Kafka drops a dead instance."""
    membership_interval_ms: Annotated[int, Field(ge=20, le=60_000)] = 250
    """Interval of reads of the member list while the group changes; at rest five minutes."""
    departed_s: Annotated[float, Field(ge=0, le=3600)] = 30.0
    """The time for which instances that left are still asked, after all others."""
    replace_after_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """The time to wait for an instance that left before others copy its partitions; the same at all instances."""

    end_offsets_interval_ms: Annotated[int, Field(ge=10, le=60_000)] = 100
    """Interval of reads of the topics' end offsets: the floor of `lag_ms`."""
    caught_up_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 2000
    """The `lag_ms` below which a partition is first served."""
    demoted_lag_ms: Annotated[int, Field(ge=100, le=3_600_000)] = 10_000
    """The extra lag at which a replica is asked after another, until it is at most CAUGHT_UP_MS behind."""
    deletions_s: Annotated[int, Field(ge=1, le=604_800)] = 600
    """The least time to remember deletions; in keyed topics, also until they are checkpointed."""
    resume_limit_s: Annotated[int, Field(ge=1)] = 43_200
    """The age since rows were current that forces a rebuild; `delete.retention.ms` of their topic does, too."""
    released_s: Annotated[int, Field(ge=1, le=2_592_000)] = 600
    """The time for which a partition that has moved away stays on disk: longer than a restart takes."""
    set_aside_s: Annotated[int, Field(ge=1, le=31_536_000)] = 604_800
    """The time for which a directory set aside stays; only the last one of each partition does."""

    tls_certificate: Path | None = None
    """The certificate of the public port, as PEM with its chain; empty serves without TLS."""
    tls_key: Path | None = None
    """The private key of that certificate, as PEM without a password."""
    tls_client_ca: Path | None = None
    """The CA of the certificates that callers must show, as PEM; empty requires none."""
    shard_tls_certificate: Path | None = None
    """The certificate that the instance shows its peers, as server and client; empty goes without TLS."""
    shard_tls_key: Path | None = None
    """The private key of that certificate, as PEM without a password."""
    shard_tls_ca: Path | None = None
    """The CA of the certificates that peers must show, as PEM: a CA only for instances."""

    call_timeout_ms: Annotated[int, Field(ge=1, le=600_000)] = 5000
    """The deadline of a call without one."""
    max_call_ms: Annotated[int, Field(ge=1, le=3_600_000)] = 30_000
    """The longest time to process a call, besides its `max_wait`, regardless of its deadline."""
    peer_timeout_ms: Annotated[int, Field(ge=1, le=60_000)] = 500
    """The time for one replica to answer while others are left."""
    peer_backoff_ms: Annotated[int, Field(ge=1, le=60_000)] = 1000
    """The time for which a replica that failed is asked after the others."""
    hedge_after_ms: Annotated[float, Field(ge=0, le=60_000)] = 20.0
    """The least time after which a call to a slow replica also goes to the next; 0 turns this off."""
    hedge_share: Annotated[float, Field(ge=0, le=1)] = 0.1
    """The largest share of forwarded calls that go to two replicas."""
    max_batch_keys: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """The most keys of one batch."""
    max_page_size: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """The most states of one page."""
    default_page_size: Annotated[int, Field(ge=1, le=100_000)] = 100
    """The number of states on a page when the request names no size."""
    max_wait_ms: Annotated[int, Field(ge=0, le=3_600_000)] = 60_000
    """The longest `max_wait` of a batch."""
    recent_changes: Annotated[int, Field(ge=0, le=10_000_000)] = 100_000
    """The number of changed rows kept in memory (0.5 KB each), to find the newer rows of a range."""
    max_request_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = 4_194_304
    """The largest request."""
    max_answer_bytes: Annotated[int, Field(ge=1024, le=1_073_741_824)] = 16_777_216
    """The largest answer of a batch, if the caller's `max_response_bytes` allows it; otherwise 4 MiB at most."""
    max_concurrent_calls: Annotated[int, Field(ge=1)] = 4096
    """The most calls in progress; more are refused at once."""
    max_in_flight_mb: Annotated[int, Field(ge=1, le=1_048_576)] = 256
    """The most memory for requests in progress and answers being sent; further calls are refused."""

    seed_replicas: bool = True
    """Takes a partition that is not on disk from a peer that serves it; else, and without one, from the topic."""
    seed_mb_per_s: Annotated[float, Field(ge=1, le=100_000)] = 100.0
    """The total rate at which the instance sends partitions to peers and backups."""
    max_seeds: Annotated[int, Field(ge=1, le=1000)] = 2
    """The most partitions that the instance sends at a time, and the most that it receives."""

    block_cache_mb: Annotated[int, Field(ge=1, le=1_048_576)] = 128
    """RocksDB's block cache, shared by all partitions."""
    write_buffers_mb: Annotated[int, Field(ge=8, le=1_048_576)] = 128
    """RocksDB's write buffers, shared by all partitions."""
    drain_s: Annotated[float, Field(ge=0, le=3600)] = 5.0
    """The longest time to wait after SIGTERM for peers to take over."""
    log_level: LogLevel = "info"
    """The lowest level to log."""

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
        needed_mb = -(-(self.max_request_bytes + self.max_answer_bytes) // (1 << 20))
        if self.max_in_flight_mb < needed_mb:
            largest = " and ".join(map(self.variable, ("max_request_bytes", "max_answer_bytes")))
            in_flight = self.variable("max_in_flight_mb")
            problems.append(f"{in_flight} has no room for one call with {largest}: raise it to {needed_mb}")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def common(self) -> dict[str, str]:
        """The settings that must be the same at all instances, as texts by their names."""
        zone = "set" if self.zone else "empty"
        return {"REPLICAS": str(self.replicas), "REPLACE_AFTER_S": f"{self.replace_after_s:g}", "ZONE": zone}

    @property
    def instance_name(self) -> str:
        return self.instance or self.address

    @property
    def address(self) -> str:
        """The address at which others reach the public service, as host:port."""
        return f"{self.advertised_host or self.host}:{self.port}"

    @property
    def shard_address(self) -> str:
        """The address at which other instances reach the internal service, as host:port."""
        return f"{self.advertised_host or self.host}:{self.shard_port}"
