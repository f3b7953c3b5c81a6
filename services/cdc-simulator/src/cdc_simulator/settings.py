"""The settings of the simulator, from environment variables that begin with CDC_SIMULATOR_."""

from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from cdc_simulator.domain import Domain
from cdc_simulator.domain_choice import choose_domain
from cdc_simulator.errors import SettingsError

PREFIX = "CDC_SIMULATOR_"
OF_TABLE = "{topic}"
OF_DOMAIN = "{domain}"


class Settings(BaseSettings):
    """Each field is the environment variable of its name in capitals after CDC_SIMULATOR_."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore", env_ignore_empty=True)

    kafka_bootstrap: str = Field(
        default="127.0.0.1:9092", min_length=1, description="Kafka brokers, as host:port,host:port."
    )
    domain: str = Field(
        default="orders",
        description="What the database is about: one of the domains that `run --help` lists."
        " Fixed when the database is made.",
    )
    topic: str = Field(
        default=OF_TABLE,
        pattern=r"^([a-zA-Z0-9._-]|\{topic\}){1,249}$",
        description=f"The topic that gets the changes of a table; {OF_TABLE} stands for the table's own.",
    )
    database: str = Field(
        default=f".run/cdc-simulator/{OF_DOMAIN}.sqlite3",
        min_length=1,
        description=f"The SQLite file; made when it does not exist. {OF_DOMAIN} stands for the domain's name.",
    )
    seed: int = Field(
        default=1, ge=0, lt=2**63, description="What all random choices follow from. Fixed when the database is made."
    )
    rows: int = Field(
        default=1000,
        ge=1,
        le=5_000_000,
        description="Rows of the domain's main table at the start, and about how many there stay."
        " Fixed when the database is made.",
    )
    customers: int = Field(
        default=100, ge=1, le=9_999_999, description="Customers or clients. Fixed when the database is made."
    )
    items: int = Field(
        default=200, ge=1, le=9_999_999, description="Articles on sale. Fixed when the database is made."
    )
    rate: float = Field(
        default=50.0,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="Changes a second; 0 makes none after the snapshot.",
    )
    limit: int = Field(
        default=0,
        ge=0,
        description="Changes after the snapshot, over all starts, after which it ends with status 0; 0 = endless.",
    )
    backlog: int = Field(
        default=1_000_000,
        ge=1,
        description="Changes not yet acknowledged by Kafka at which the table stops changing for a while.",
    )
    drain_s: float = Field(
        default=5.0,
        ge=0,
        le=3600,
        allow_inf_nan=False,
        description="Seconds that Kafka gets to acknowledge the rest on SIGTERM.",
    )
    metrics_host: str = Field(
        default="127.0.0.1", min_length=1, description="Where /metrics, /healthz and /readyz listen."
    )
    metrics_port: int = Field(default=9101, ge=1, le=65_535, description="Their port.")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is logged."
    )

    @field_validator("domain")
    @classmethod
    def _is_a_domain(cls, name: str) -> str:
        choose_domain(name)
        return name

    def chosen_domain(self) -> Domain:
        """Returns the domain of the name."""
        return choose_domain(self.domain)

    def database_file(self) -> Path:
        """Returns the file of the database."""
        return Path(self.database.replace(OF_DOMAIN, self.domain))

    def topics(self) -> dict[str, str]:
        """Returns the topic of each table, by the table's name. Raises SettingsError when two have the same."""
        tables = self.chosen_domain().tables
        topics = {table.name: self.topic.replace(OF_TABLE, table.topic) for table in tables}
        if len(set(topics.values())) < len(topics):
            raise SettingsError(
                f"{variable('topic')}={self.topic!r}: the domain {self.domain} has the tables {', '.join(topics)}, "
                f"and each needs a topic of its own; put {OF_TABLE} into it"
            )
        return topics


def load_settings(domain: str | None = None) -> Settings:
    """Reads the environment; `domain` goes before it. Raises SettingsError with one line that names what is wrong."""
    try:
        return Settings() if domain is None else Settings(domain=domain)
    except ValidationError as error:
        complaints = [f"{variable(str(each['loc'][0]))}={each['input']!r}: {each['msg']}" for each in error.errors()]
        raise SettingsError("; ".join(complaints)) from error


def variable(field: str) -> str:
    """Returns the environment variable of a field."""
    return f"{PREFIX}{field.upper()}"


def describe_settings() -> str:
    """Returns a paragraph for each variable, for `--help`."""
    lines = []
    for name, field in Settings.model_fields.items():
        lines.append(f"  {variable(name)} [{field.default}]\n      {field.description}")
    return "\n".join(lines)
