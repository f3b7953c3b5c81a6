"""The record of a release in the tree: `releases/<part>/<version>/`, because not every copy has the tags."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import Version

RECORD = "record.json"
CONSTRAINTS = "constraints.txt"
DESCRIPTORS = "contract.binpb"
"""Only in records of the contract: the side that `buf breaking` compares with."""


@dataclass(frozen=True)
class Record:
    """One release: its commit, the version of its contract, and the SHA-256 of each file by name."""

    part: str
    version: str
    commit: str
    contract: str | None
    files: Mapping[str, str]

    def write(self, releases: Path, constraints: str, descriptors: bytes | None) -> Path:
        """Writes the record, the exact versions of all dependencies, and descriptors; returns its directory."""
        directory = releases / self.part / self.version
        directory.mkdir(parents=True)
        (directory / RECORD).write_text(json.dumps(asdict(self), indent=2) + "\n")
        (directory / CONSTRAINTS).write_text(constraints)
        if descriptors is not None:
            (directory / DESCRIPTORS).write_bytes(descriptors)
        return directory


def read_record(directory: Path) -> Record:
    """Reads the record of one release. Raises FileNotFoundError, or TypeError for a record of another form."""
    return Record(**json.loads((directory / RECORD).read_text()))


def last_release(releases: Path, part: str) -> Path | None:
    """Returns the directory of the highest version of a part; None while it has no release."""
    directories = list((releases / part).glob(f"*/{RECORD}"))
    return max((each.parent for each in directories), key=lambda each: Version(each.name), default=None)
