"""The settings of the stream-processor, from environment variables that begin with STREAM_PROCESSOR_."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from stream_processor.definition.duration import CheckpointInterval
from stream_processor.errors import SettingsError

PREFIX = "STREAM_PROCESSOR_"
JARS = Path(__file__).resolve().parents[2] / "jvm" / "target" / "jars"
QUICK_START = "-XX:TieredStopAtLevel=1"
"""Only the quick compiler: on two cores half the CPU of the first minutes. Many cores do better without."""
Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """Where the processor reads, writes and keeps its checkpoints."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    kafka_bootstrap: str = Field(default="127.0.0.1:9092", min_length=1, description="Kafka's bootstrap addresses.")
    checkpoints: str = Field(
        default=".run/checkpoints",
        min_length=1,
        description="Where checkpoints stand: a local directory, or a URI of a file system that Hadoop knows.",
    )
    checkpoint_interval: CheckpointInterval | None = Field(
        default=None, description="The time between checkpoints of all real-time pipelines, over what their files say."
    )
    master: str = Field(default="", description="Spark's master; empty: local[the slots needed].")
    driver_memory: str = Field(default="1g", pattern=r"^\d+[mg]$", description="The heap of Spark's driver.")
    java_options: str = Field(
        default=QUICK_START, description="More options for the JVMs of driver and executors, by spaces."
    )
    jars: Path = Field(default=JARS, description="The directory that `mvn -f jvm/pom.xml package` fills.")
    drain_s: float = Field(
        default=5.0, ge=0, le=600, description="How long queries may take to end with a checkpoint when told to stop."
    )
    metrics_host: str = Field(default="127.0.0.1", min_length=1, description="Where /metrics and health listen.")
    metrics_port: Port = Field(default=9102, description="The port of /metrics and health.")


def load() -> Settings:
    """The settings of this environment. Raises SettingsError naming the variable that is wrong."""
    try:
        return Settings()
    except ValidationError as error:
        wrong = error.errors()[0]
        variable = PREFIX + "_".join(str(part) for part in wrong["loc"]).upper()
        problem = wrong["msg"].removeprefix("Value error, ")
        raise SettingsError(f"{variable}: {problem} (it is {wrong['input']!r})") from error
