"""The folder of a part: its name and version, its changelog, and the version ranges that other parts accept."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.version import Version

from testkit.release.image_tags import set_tags

_RELEASE = re.compile(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", re.ASCII)
"""What a chart, an image and a wheel all take for a version."""

_VERSION = re.compile(r'^version = ".*"$', re.MULTILINE)
_CHART_VERSION = re.compile(r"^(version|appVersion): .*$", re.MULTILINE)
UNRELEASED = "## [Unreleased]\n"
FOLDERS = ("proto", "libs/*", "testkit", "clients/python", "tools/*", "infra", "services/*")


class ReleaseError(Exception):
    """A part cannot be released; the text names the step that has to come first."""


@dataclass(frozen=True)
class PartFolder:
    """A folder with a `pyproject.toml`, in a git repository. It may be the root of the repository itself."""

    folder: Path
    root: Path

    @property
    def project(self) -> dict[str, Any]:
        """The table `project` of its file."""
        return _project(self.folder)

    @property
    def name(self) -> str:
        return str(self.project["name"])

    def check(self, version: str) -> None:
        """Raises ReleaseError for a version that is invalid, recorded, too low, or excluded by another part."""
        if not (self.folder / "pyproject.toml").exists():
            raise ReleaseError(f"{self.folder.name} has no pyproject.toml, so it is no part")
        if not _RELEASE.fullmatch(version):
            raise ReleaseError(f"VERSION={version} is no version such as 0.2.0")
        if (self.root / "releases" / self.name / version).exists():
            raise ReleaseError(f"{self.name} {version} is recorded: choose another VERSION")
        wanted = Version(version)
        if wanted < Version(self.project["version"]):
            raise ReleaseError(f"VERSION={version} is lower than {self.project['version']} of {self.name}")
        for reader, requirement in self._excluding(wanted):
            raise ReleaseError(f"{reader} speaks {requirement}, without {version}: try it, and widen the range first")
        if self._changelog.exists() and not self._unreleased().strip():
            raise ReleaseError(f"{self._changelog.name} has nothing under Unreleased: write what has changed")

    def set_version(self, version: str, day: str) -> None:
        """Writes the version into `pyproject.toml`, charts and tags; makes Unreleased a section of the changelog."""
        pyproject, line = self.folder / "pyproject.toml", f'version = "{version}"'
        pyproject.write_text(_VERSION.sub(line, pyproject.read_text(), count=1))
        for chart in (*self.folder.glob("chart/Chart.yaml"), *self.folder.glob("charts/*/Chart.yaml")):
            chart.write_text(_CHART_VERSION.sub(rf"\g<1>: {version}", chart.read_text()))
        set_tags(self.root, str(self.folder.relative_to(self.root)), version)
        if self._changelog.exists():
            section = f"{UNRELEASED}\n## [{version}] - {day}\n"
            self._changelog.write_text(self._changelog.read_text().replace(UNRELEASED, section, 1))

    @property
    def _changelog(self) -> Path:
        return self.folder / "CHANGELOG.md"

    def _unreleased(self) -> str:
        """Returns the text below the heading Unreleased. Raises ReleaseError when there is none."""
        _, heading, rest = self._changelog.read_text().partition(UNRELEASED)
        if not heading:
            raise ReleaseError(f"{self._changelog.name} has no heading {UNRELEASED.strip()}")
        return rest.partition("\n## ")[0]

    def _excluding(self, version: Version) -> Iterator[tuple[str, Requirement]]:
        """Yields the parts beside this one that do not accept the version, with their requirement."""
        for folder in part_folders(self.root).values():
            project = _project(folder)
            extras = project.get("optional-dependencies", {}).values()
            for requirement in map(Requirement, [*project.get("dependencies", ()), *(y for x in extras for y in x)]):
                if requirement.name == self.name and version not in requirement.specifier:
                    yield project["name"], requirement


def part_folders(root: Path) -> dict[str, Path]:
    """Returns the folder of each part of a repository, by the part's name."""
    files = [file for pattern in FOLDERS for file in root.glob(f"{pattern}/pyproject.toml")]
    return {str(_project(file.parent)["name"]): file.parent for file in files}


def _project(folder: Path) -> dict[str, Any]:
    project: dict[str, Any] = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    return project
