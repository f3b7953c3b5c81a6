"""Builds the image of a part from wheels, which replace the folders of the other parts that its Dockerfile copies."""

import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from testkit.containers.engine import NoEngineError, find_engine
from testkit.release.artifacts import run
from testkit.release.part_files import ReleaseError
from testkit.repository_files import DOMAINS

BASES = ("PYTHON_IMAGE", "MAVEN_IMAGE")
MB = 1_000_000
COPIED = re.compile(r"^COPY (?!--)(.+) \S+$", re.MULTILINE)
PARTS = {
    "proto": "statecast-contract",
    "libs/service": "statecast-service",
    "libs/domains": "statecast-domains",
    "clients/python": "statecast-client",
}
"""The distributions that Dockerfiles install, by their folder in the repository."""

IN_WHEELS = {"clients/javascript"}
"""Folders with files that are already in a wheel."""

BACKEND = '''\
"""Gives the published wheel that lies here for one that is built: so the Dockerfile is the same in the repository."""

import shutil
from pathlib import Path


def build_wheel(directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Copies the wheel (PEP 517)."""
    (wheel,) = Path(__file__).parent.glob("*.whl")
    return Path(shutil.copy(wheel, directory)).name
'''
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["src"]\n'

BUILT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "chart", "dist", "target", "tests")


def copied(dockerfile: str) -> list[str]:
    """Returns the paths in the context that a Dockerfile copies."""
    return [source for line in COPIED.findall(dockerfile) for source in line.split()]


def place_in_context(folder: Path) -> Path:
    """Returns the path of a part in its context, as in the repository. Raises ReleaseError if none is copied."""
    for place in map(Path, copied((folder / "Dockerfile").read_text())):
        if folder.name in place.parts:
            return Path(*place.parts[: place.parts.index(folder.name) + 1])
    raise ReleaseError(f"the Dockerfile copies nothing from a folder {folder.name}: copy the part from its own")


def make_context(folder: Path, context: Path, released: Path | None = None) -> Path:
    """Fills a directory with the files that the part's Dockerfile copies, and returns it. Raises ReleaseError.

    A `released` wheel replaces the part itself; wheels of other parts beside it are used, too.
    """
    shutil.rmtree(context, ignore_errors=True)
    part = context / place_in_context(folder)
    shutil.copytree(folder, part, ignore=BUILT)
    shutil.copy2(folder / "constraints.txt", context)
    places = copied((folder / "Dockerfile").read_text())
    _place_published(folder, context, [place for place in places if place in PARTS], released)
    if released is not None:
        shutil.rmtree(part / "src")
        _hand_over(released, part)
    if "domains" in places:
        shutil.copytree(DOMAINS, context / "domains")
    for place in IN_WHEELS.intersection(places):
        (context / place).mkdir(parents=True)
    return context


def build_image(context: Path, folder: Path, version: str) -> str:
    """Builds `statecast/<folder>:<version>`; returns a line with the result or the reason. Raises ContainerError."""
    tag = f"statecast/{folder.name}:{version}"
    try:
        engine = find_engine()
    except NoEngineError as error:
        return f"{error}; {tag} was not built. Its context is {context}"
    flags = shlex.split(os.environ.get("IMAGE_BUILD_FLAGS", ""))
    bases = [f"{name}={value}" for name in BASES if (value := os.environ.get(name))]
    arguments = [flag for base in bases for flag in ("--build-arg", base)]
    dockerfile = context / place_in_context(folder) / "Dockerfile"
    engine.run("build", *flags, *arguments, "-f", str(dockerfile), "-t", tag, str(context))
    return f"{tag}, {engine.size_bytes(tag) / MB:.0f} MB"


def _place_published(folder: Path, context: Path, places: Sequence[str], released: Path | None) -> None:
    """Puts the wheel of each part, in the range of versions that the part accepts, into its path."""
    needed = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [each for each in needed if each.startswith(tuple(PARTS[place] for place in places))]
    wheels = context / "wheels"
    beside = ["--find-links", str(released.parent)] if released else []
    run(folder, sys.executable, "-m", "pip", "download", "-q", "--no-deps", *beside, "-d", str(wheels), *wanted)
    for place in places:
        (wheel,) = wheels.glob(f"{PARTS[place].replace('-', '_')}-*.whl")
        _hand_over(wheel, context / place)
    shutil.rmtree(wheels)


def _hand_over(wheel: Path, place: Path) -> None:
    """Makes a folder from which pip installs the wheel in it."""
    (place / "src").mkdir(parents=True)
    shutil.copy2(wheel, place / "src")
    (place / "src" / "backend.py").write_text(BACKEND)
    (place / "pyproject.toml").write_text(PYPROJECT)
