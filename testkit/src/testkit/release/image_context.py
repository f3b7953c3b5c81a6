"""Makes the context of a service's image where its folder is alone: published wheels stand for the other parts."""

import re
import shutil
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from testkit.release.artifacts import run
from testkit.repository_files import DOMAINS

COPIED = re.compile(r"^COPY (?!--)(.+) \S+$", re.MULTILINE)
PARTS = {
    "proto": "statecast-contract",
    "libs/service": "statecast-service",
    "libs/domains": "statecast-domains",
    "clients/python": "statecast-client",
}
"""The distribution of each folder of the repository that Dockerfiles install."""

IN_WHEELS = {"clients/javascript"}
"""Folders whose files a wheel has already."""

BACKEND = '''\
"""Gives the published wheel that lies here for one that is built: so the Dockerfile is the same in the repository."""

import shutil
from pathlib import Path


def build_wheel(directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Copies the wheel (PEP 517)."""
    (wheel,) = Path(__file__).parent.glob("*.whl")
    return Path(shutil.copy(wheel, directory)).name
'''
PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


BUILT = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__", "build", "dist", "target", "tests")


def copied(dockerfile: str) -> list[str]:
    """Returns the places of the context that a Dockerfile copies."""
    return [source for line in COPIED.findall(dockerfile) for source in line.split()]


def make_context(folder: Path, context: Path) -> Path:
    """Fills a directory with all that the Dockerfile of the service copies, and returns it. Raises ReleaseError."""
    shutil.rmtree(context, ignore_errors=True)
    shutil.copytree(folder, context / "services" / folder.name, ignore=BUILT)
    shutil.copy2(folder / "constraints.txt", context)
    places = copied((folder / "Dockerfile").read_text())
    _place_published(folder, context, [place for place in places if place in PARTS])
    if "domains" in places:
        shutil.copytree(DOMAINS, context / "domains")
    for place in IN_WHEELS.intersection(places):
        (context / place).mkdir(parents=True)
    return context


def _place_published(folder: Path, context: Path, places: Sequence[str]) -> None:
    """Puts the wheel of each part, in the range that the service speaks, into its place, as a folder for pip."""
    needed = tomllib.loads((folder / "pyproject.toml").read_text())["project"]["dependencies"]
    wanted = [each for each in needed if each.startswith(tuple(PARTS[place] for place in places))]
    wheels = context / "wheels"
    run(folder, sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(wheels), *wanted)
    for place in places:
        target = context / place
        target.mkdir(parents=True)
        (wheel,) = wheels.glob(f"{PARTS[place].replace('-', '_')}-*.whl")
        wheel.rename(target / wheel.name)
        (target / "pyproject.toml").write_text(PYPROJECT)
        (target / "backend.py").write_text(BACKEND)
    wheels.rmdir()
