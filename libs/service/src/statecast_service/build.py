"""The build of a running program: its version, its commit, and the version of its contract."""

from argparse import ArgumentParser
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import NamedTuple

CONTRACT = "statecast-contract"
COMMIT_FILE = "commit.txt"
UNKNOWN = "unknown"


class Build(NamedTuple):
    """The build that `--version` and the metric report; each part is a version, a commit, or `unknown`."""

    distribution: str
    version: str
    commit: str
    contract: str

    @classmethod
    def of(cls, distribution: str) -> "Build":
        """Returns the build of an installed distribution. Its package has the same name with underscores."""
        return cls(distribution, _version(distribution), _commit(distribution.replace("-", "_")), _version(CONTRACT))


def add_version(parser: ArgumentParser, distribution: str) -> None:
    """Adds `--version`, which prints the build on one line and ends the program with status 0."""
    build = Build.of(distribution)
    text = f"{parser.prog} {build.version} (commit {build.commit}, contract {build.contract})"
    parser.add_argument("--version", action="version", version=text, help="show version, commit and contract")


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # its modules were copied, not installed
        return UNKNOWN


def _commit(package: str) -> str:
    """Reads the file that `git archive` fills; a checkout has git's placeholder there, which begins with a `$`."""
    try:
        text = (files(package) / COMMIT_FILE).read_text().strip()
    except (ModuleNotFoundError, FileNotFoundError):
        return UNKNOWN
    return UNKNOWN if text.startswith("$") else text
