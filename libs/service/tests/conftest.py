"""The settings of an imaginary service."""

from pathlib import Path
from typing import Annotated, Self

import pytest
from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_settings import NoDecode, SettingsConfigDict

from statecast_service.logs import LogLevel
from statecast_service.settings import Port
from statecast_service.tls import PortSettings


class Settings(PortSettings):
    """One field of each kind."""

    model_config = SettingsConfigDict(env_prefix="DEMO_")

    metrics_host: str = Field(default="127.0.0.1", min_length=1, description="Where /metrics listens.")
    metrics_port: Port = Field(default=0, description="Its port; 0 takes a free one.")
    log_level: LogLevel = Field(default="info", description="The lowest level that is logged.")
    secret: SecretStr = Field(default=SecretStr("none"), min_length=4, description="A | B.")
    rate: float = Field(default=50.0, ge=0, description="Changes a second.")
    shortest: int = Field(default=1, description="Not above DEMO_LONGEST.")
    longest: int = Field(default=9, description="Not below DEMO_SHORTEST.")
    names: Annotated[tuple[str, ...], NoDecode] = Field(default=("a", "b"), description="Names, with commas.")
    stores: Path = Field(default=Path("/opt/demo/stores.yaml"), description="The stores file.")
    tls_certificate: Path | None = Field(default=None, description="The certificate.")
    tls_key: Path | None = Field(default=None, description="Its key.")
    tls_client_ca: Path | None = Field(default=None, description="The CA of callers.")

    @field_validator("names", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        if value == "none":
            raise ValueError("somebody must be named")
        return value.split(",") if isinstance(value, str) else value

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.shortest > self.longest:
            raise ValueError("DEMO_SHORTEST is above DEMO_LONGEST: lower it")
        return self


@pytest.fixture
def settings_class() -> type[Settings]:
    return Settings
