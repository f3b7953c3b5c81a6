"""The settings of the simulator, from environment variables that begin with CDC_SIMULATOR_."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import SettingsConfigDict

from cdc_simulator.domains import choose_domain
from statecast_service.kafka import KafkaSettings
from statecast_service.logs import LogLevel
from statecast_service.settings import Port

TABLE_TOPIC = "{topic}"
DOMAIN_NAME = "{domain}"
FIXED = "Fixed at creation."

Finite = Annotated[float, Field(allow_inf_nan=False)]


class Settings(KafkaSettings):
    """Each field is the environment variable of its name in capitals after CDC_SIMULATOR_."""

    model_config = SettingsConfigDict(env_prefix="CDC_SIMULATOR_")

    domain: str = Field(default="orders", description=f"The domain; `run --domain NAME` overrides it. {FIXED}")
    sink: Literal["kafka", "postgres"] = Field(
        default="kafka",
        description="The target of the changes: Kafka, or tables in PostgreSQL, from which a connector reads them.",
    )
    postgres_url: SecretStr = Field(
        default=SecretStr(""), description="The PostgreSQL database, as `postgresql://user:password@host/database`."
    )
    topic: str = Field(
        default=TABLE_TOPIC,
        pattern=r"^([a-zA-Z0-9._-]|\{topic\}){1,249}$",
        description=f"The topic of a table's changes; {TABLE_TOPIC} stands for the table's own.",
    )
    database: str = Field(
        default=f".run/cdc-simulator/{DOMAIN_NAME}.sqlite3",
        min_length=1,
        description=f"The SQLite file, created if missing; {DOMAIN_NAME} stands for the domain's name.",
    )
    seed: int = Field(default=1, ge=0, lt=2**63, description=f"The seed of all random choices. {FIXED}")
    rows: int = Field(default=1000, ge=1, le=5_000_000, description=f"Approximate rows in the main table. {FIXED}")
    customers: int = Field(default=100, ge=1, le=9_999_999, description=f"Customers or clients. {FIXED}")
    items: int = Field(default=200, ge=1, le=9_999_999, description=f"Articles on sale. {FIXED}")
    rate: Finite = Field(default=50.0, ge=0, le=1_000_000, description="Changes a second after the snapshot.")
    limit: int = Field(
        default=0,
        ge=0,
        description="Changes after the snapshot, over all starts, before it exits with status 0; 0 = endless.",
    )
    backlog: int = Field(default=1_000_000, ge=1, description="Unacknowledged changes at which it pauses.")
    drain_s: Finite = Field(default=5.0, ge=0, le=3600, description="The most seconds to publish the rest on SIGTERM.")
    metrics_host: str = Field(default="127.0.0.1", min_length=1, description="The host for /metrics and the probes.")
    metrics_port: Port = Field(default=9101, description="The port of both; 0 takes a free one and logs it.")
    log_level: LogLevel = Field(default="info", description="The lowest level to log.")

    @field_validator("domain")
    @classmethod
    def _is_a_domain(cls, name: str) -> str:
        choose_domain(name)
        return name

    @model_validator(mode="after")
    def _has_a_topic_for_each_table(self) -> Self:
        if len(set(self.topics().values())) < len(self.topics()):
            raise ValueError(
                f"{self.variable('topic')}={self.topic!r}: the domain {self.domain} has the tables "
                f"{', '.join(self.topics())}, and each needs a topic of its own; put {TABLE_TOPIC} into it"
            )
        return self

    @model_validator(mode="after")
    def _names_the_database(self) -> Self:
        if (self.sink == "postgres") != bool(self.postgres_url.get_secret_value()):
            sink, url = self.variable("sink"), self.variable("postgres_url")
            raise ValueError(f"{sink}={self.sink}: {url} must be set for postgres, and for nothing else")
        return self

    def database_file(self) -> Path:
        return Path(self.database.replace(DOMAIN_NAME, self.domain))

    def topics(self) -> dict[str, str]:
        """Returns the topic of each table, by the table's name."""
        return {table.name: self.topic.replace(TABLE_TOPIC, table.topic) for table in choose_domain(self.domain).tables}
