"""The files of the repository that tests of several parts read: links here, and copies in the wheel."""

from pathlib import Path

_FILES = Path(__file__).parent / "repository"
DOMAINS = (_FILES / "domains").resolve()
"""The shipped domains, each with its pipelines and its page."""

EXAMPLES = (_FILES / "examples").resolve()
"""The examples of the documentation."""

FRAMES = (_FILES / "frames.json").resolve()
"""The frames of the sockets that every client must read and write."""

KAFKA_POM = (_FILES / "kafka-pom.xml").resolve()
"""The jars of the broker that tests start; Maven copies them into `target/libs` beside it."""

TOPICS = (_FILES / "topics.yaml").resolve()
"""The topics of the shipped domains."""
