"""Tests a part in its folder, without the repository, and builds its image: `python -m testkit.part COMMAND`.

`fast` runs the tests that need neither Spark nor Kafka nor Maven. `test` fetches missing jars, and runs all but the
long tests. Both take further arguments of pytest. `image` builds the image with the container engine of this machine;
without an engine it reports that, and the directory of the context.
"""

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from testkit.broker import LIBS
from testkit.release.image_context import build_image, make_context
from testkit.release.part_files import PartFolder
from testkit.repository_files import KAFKA_POM

OPTIONS = Path(__file__).parent / "pytest.ini"
SELECTIONS = {"fast": "not kafka and not spark and not stack", "test": "not long"}


def run_tests(folder: Path, selection: str, arguments: Sequence[str]) -> int:
    """Runs the tests of a part, and returns pytest's status."""
    options = ["-c", str(OPTIONS), "--rootdir", str(folder), "-p", "testkit.pytest_plugin", "-m", selection]
    command = [sys.executable, "-m", "pytest", *options, *arguments, "tests"]
    return subprocess.run(command, cwd=folder, check=False).returncode


def fetch_jars(folder: Path) -> None:
    """Fetches the broker's jars and builds the part's own, with Maven. Raises CalledProcessError when Maven fails."""
    jars = {KAFKA_POM: LIBS, folder / "jvm" / "pom.xml": folder / "jvm" / "target" / "jars"}
    for pom, directory in jars.items():
        if pom.exists() and not any(directory.glob("*.jar")):
            subprocess.run(["mvn", "-q", "-B", "-ntp", "-f", str(pom), "package", "-DskipTests"], check=True)


def image(folder: Path) -> str:
    """Builds the image of the service, and returns a line about it. Raises ReleaseError and ContainerError."""
    root = folder.parents[1]
    context = root if (root / "constraints.txt").exists() else make_context(folder, folder / "build" / "image")
    return build_image(context, folder, PartFolder(folder, root).project["version"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command in the current directory, and returns the status of the process."""
    parser = argparse.ArgumentParser(prog="python -m testkit.part", description=__doc__)
    parser.add_argument("command", choices=[*SELECTIONS, "image"])
    options, more = parser.parse_known_args(arguments)
    if options.command == "image":
        sys.stdout.write(f"{image(Path.cwd())}\n")
        return 0
    if options.command == "test":
        fetch_jars(Path.cwd())
    return run_tests(Path.cwd(), SELECTIONS[options.command], more)


if __name__ == "__main__":
    sys.exit(main())
