"""Makes the virtual environment of a recorded release, from wheels built anew from the commits of the records."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from testkit.release.artifacts import build_wheel, digest, run
from testkit.release.part_files import ReleaseError, part_folders
from testkit.release.record import CONSTRAINTS, Record, last_release, read_record

DONE = ".done"


def cache_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns the path of the environments, below XDG_CACHE_HOME, by default ~/.cache."""
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "statecast" / "releases"


@dataclass(frozen=True)
class ReleasedEnvironment:
    """The programs of one release, with exactly the dependencies of its record, below `directory`."""

    record: Record
    directory: Path

    @property
    def programs(self) -> Path:
        """The directory with the programs and `python`."""
        return self.directory / "venv" / "bin"

    @property
    def jars(self) -> Path:
        """The directory with the jars of a part that has a folder `jvm`."""
        return self.directory / "jvm" / "target" / "jars"


def last_environment(root: Path, part: str, cache: Path) -> ReleasedEnvironment:
    """Returns the environment of the last recorded release of a part, and makes it first where the cache has none.

    Raises ReleaseError without a record, without the recorded commit, or when a wheel is not the one of the record.
    """
    recorded = last_release(root / "releases", part)
    if recorded is None:
        raise ReleaseError(f"{part} has no recorded release: `make release` makes one")
    record = read_record(recorded)
    made = ReleasedEnvironment(record, cache / record.part / record.version)
    if not (made.directory / DONE).exists():
        _make(root, made, recorded / CONSTRAINTS)
        (made.directory / DONE).touch()
    return made


def _make(root: Path, made: ReleasedEnvironment, constraints: Path) -> None:
    wheels = made.directory / "wheels"
    wheels.mkdir(parents=True, exist_ok=True)
    wheel = _wheel(root, made.record, wheels)
    for other in _own(root, constraints):
        _wheel(root, other, wheels)
    run(made.directory, sys.executable, "-m", "venv", "--clear", "venv")
    limits = ["-c", str(constraints), "--find-links", str(wheels)]
    run(made.directory, str(made.programs / "python"), "-m", "pip", "install", "-q", *limits, str(wheel))
    jvm = part_folders(root)[made.record.part].relative_to(root) / "jvm"
    if (root / jvm / "pom.xml").exists():
        run(root, "git", "archive", "--output", str(made.directory / "jvm.tar"), f"{made.record.commit}:{jvm}")
        (made.directory / "jvm").mkdir(exist_ok=True)
        run(made.directory / "jvm", "tar", "-xf", "../jvm.tar")
        run(made.directory / "jvm", "mvn", "-q", "-B", "-ntp", "package", "-DskipTests")


def _own(root: Path, constraints: Path) -> Iterator[Record]:
    """Yields the records of the other parts of the repository that a release needs."""
    for line in constraints.read_text().splitlines():
        name, _, version = line.partition("==")
        if (directory := root / "releases" / name / version).exists():
            yield read_record(directory)


def _wheel(root: Path, record: Record, wheels: Path) -> Path:
    """Builds the wheel of a record. Raises ReleaseError unless it has the recorded digest."""
    prefix = str(part_folders(root)[record.part].relative_to(root))
    try:
        run(root, "git", "cat-file", "-e", record.commit)
    except ReleaseError as error:
        missing = f"{record.part} {record.version} is commit {record.commit}, which is not here"
        raise ReleaseError(f"{missing}: fetch the history of the repository") from error
    with TemporaryDirectory() as scratch:
        wheel = build_wheel(root, prefix, record.commit, Path(scratch) / "build", wheels)
    if record.files[wheel.name] != digest(wheel):
        raise ReleaseError(f"{wheel.name} of commit {record.commit} is not the wheel that its record names")
    return wheel
