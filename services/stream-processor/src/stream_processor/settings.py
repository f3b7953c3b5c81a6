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
"""Only the quick compiler: on two cores half the CPU of the first minutes. Many cores do better without."""


class Settings(KafkaSettings, DescriptorSettings):
    """Where the processor reads, writes and keeps its checkpoints."""

    # An empty STREAM_PROCESSOR_JAVA_OPTIONS is no default, but no options.
    model_config = SettingsConfigDict(env_prefix="STREAM_PROCESSOR_", env_ignore_empty=False)

    checkpoints: str = Field(
        default=".run/checkpoints",
        min_length=1,
        description="Where checkpoints stand: a local directory, or a URI of a file system that Hadoop knows.",
    )
    checkpoint_interval: CheckpointInterval | None = Field(
        default=None, description="The time between checkpoints of all real-time pipelines, over what their files say."
    )
    master: str = Field(default="", description="Spark's master; empty: local[the slots needed].")
    spare_slots: int = Field(
        default=32,
        ge=0,
        le=1000,
        description="Task slots of a local master beyond those needed, for pipelines that come later.",
    )
    topics_wait_s: float = Field(
        default=30.0,
        ge=0,
        le=3600,
        description="Seconds that a start waits for topics of some pipelines once others have theirs, and start alone.",
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
        default=5.0, ge=0, le=600, description="Seconds that queries may take to end with a checkpoint after SIGTERM."
    )
    metrics_host: str = Field(default="127.0.0.1", min_length=1, description="Where /metrics and health listen.")
    metrics_port: Port = Field(default=9102, description="The port of /metrics and health.")
