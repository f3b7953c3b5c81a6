"""The settings of the stream-processor, from environment variables that begin with STREAM_PROCESSOR_."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from statecast_domains.values import CheckpointInterval
from statecast_service.kafka import KafkaSettings
from statecast_service.settings import DescriptorSettings, Port

PACKED = Path(__file__).resolve().parent / "jars"
"""The jars in an installed wheel; a checkout has those that Maven makes."""
JARS = PACKED if PACKED.is_dir() else PACKED.parents[2] / "jvm" / "target" / "jars"
QUICK_START = "-XX:TieredStopAtLevel=1"
"""Uses only the quick compiler: halves the CPU of the first minutes on two cores. Slower on many cores."""


class Settings(KafkaSettings, DescriptorSettings):
    """Each field is the environment variable of its name in capitals after STREAM_PROCESSOR_."""

    # An empty STREAM_PROCESSOR_JAVA_OPTIONS means no options, not the default.
    model_config = SettingsConfigDict(env_prefix="STREAM_PROCESSOR_", env_ignore_empty=False)

    checkpoints: str = Field(
        default=".run/checkpoints",
        min_length=1,
        description="The place of the checkpoints: a local directory, or a URI of a file system that Hadoop supports.",
    )
    checkpoint_interval: CheckpointInterval | None = Field(
        default=None, description="The time between checkpoints of all real-time pipelines; overrides their files."
    )
    master: str = Field(default="", description="Spark's master; empty takes local[the slots needed].")
    spare_slots: int = Field(
        default=32,
        ge=0,
        le=1000,
        description="Extra task slots of a local master, for pipelines added later.",
    )
    topics_wait_s: float = Field(
        default=30.0,
        ge=0,
        le=3600,
        description="Seconds to wait at the start for missing topics of some pipelines; the others then start alone.",
    )
    max_failures: int = Field(
        default=5,
        ge=1,
        le=1000,
        description="Failures in a row after which a pipeline stays stopped; five minutes without one end the row.",
    )
    driver_memory: str = Field(default="1g", pattern=r"^\d+[mg]$", description="The heap of Spark's driver.")
    java_options: str = Field(
        default=QUICK_START,
        description="More options for the JVMs of driver and executors, by spaces; set it empty on many cores.",
    )
    jars: Path = Field(
        default=JARS, description="The directory of the jars; in a checkout `mvn -f jvm/pom.xml package` fills it."
    )
    drain_s: float = Field(
        default=5.0, ge=0, le=600, description="Most seconds for queries to end with a checkpoint after SIGTERM."
    )
    metrics_host: str = Field(default="127.0.0.1", min_length=1, description="The host for /metrics and health.")
    metrics_port: Port = Field(default=9102, description="The port for /metrics and health.")
