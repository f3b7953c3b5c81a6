"""The artifacts of a release: the wheel, built from a commit; its resolved dependencies; the bill of materials."""

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from testkit.release.part_files import ReleaseError

DESCRIPTORS_OF_WHEEL = "statecast/contract.binpb"


class Needed(NamedTuple):
    """A dependency of a wheel, as pip would install it now."""

    name: str
    version: str
    sha256: str
    license: str


def run(directory: Path, *command: str, **environment: str) -> str:
    """Runs a command and returns its output. Raises ReleaseError with the command's error text when it fails."""
    ended = subprocess.run(
        command, cwd=directory, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    if ended.returncode != 0:
        raise ReleaseError(f"{' '.join(command[:4])} failed: {(ended.stderr or ended.stdout).strip()}")
    return ended.stdout


def build_wheel(root: Path, prefix: str, commit: str, scratch: Path, out: Path) -> Path:
    """Builds the part at `prefix` only from a commit, so that the same commit gives the same bytes."""
    scratch.mkdir()
    run(root, "git", "archive", "--output", str(scratch / "tree.tar"), commit)
    run(scratch, "tar", "-xf", "tree.tar")
    seconds = run(root, "git", "show", "-s", "--format=%ct", commit).strip()
    built = scratch / "wheel"
    _pip(scratch, "wheel", "-q", "--no-deps", "-w", str(built), str(scratch / prefix), SOURCE_DATE_EPOCH=seconds)
    (wheel,) = built.glob("*.whl")
    out.mkdir(exist_ok=True)
    return wheel.replace(out / wheel.name)


def resolve(wheel: Path, constraints: Path | None) -> Sequence[Needed]:
    """Returns the distributions that pip would install for the wheel. Own parts come from wheels beside it.

    The wheel itself is left out.
    """
    limits = ["-c", str(constraints)] if constraints else []
    options = ["--dry-run", "--ignore-installed", "--find-links", str(wheel.parent), "--report", "-", *limits]
    report = json.loads(_pip(wheel.parent, "install", "-q", *options, str(wheel)))
    needed = [_needed(each) for each in report["install"] if not each.get("is_direct")]
    return sorted(needed, key=lambda each: each.name.lower())


def _needed(item: Mapping[str, Any]) -> Needed:
    metadata = item["metadata"]
    digest = item["download_info"]["archive_info"]["hashes"]["sha256"]
    stated = metadata.get("license_expression") or metadata.get("license") or ""
    return Needed(metadata["name"], metadata["version"], digest, stated.partition("\n")[0])


def bill_of_materials(name: str, version: str, needed: Iterable[Needed]) -> str:
    """Returns the bill of materials as CycloneDX 1.6, without a time or serial number, so that it is reproducible."""
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _component(name, version, "application")},
        "components": [
            _component(each.name, each.version, "library")
            | {"hashes": [{"alg": "SHA-256", "content": each.sha256}]}
            | ({"licenses": [{"license": {"name": each.license}}]} if each.license else {})
            for each in needed
        ],
    }
    return json.dumps(document, indent=2) + "\n"


def _component(name: str, version: str, kind: str) -> dict[str, Any]:
    purl = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    return {"type": kind, "bom-ref": purl, "name": name, "version": version, "purl": purl}


def descriptors_of(wheel: Path) -> bytes | None:
    """Returns the descriptors in the wheel of the contract; None for any other wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(DESCRIPTORS_OF_WHEEL) if DESCRIPTORS_OF_WHEEL in archive.namelist() else None


def digest(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def _pip(directory: Path, *arguments: str, **environment: str) -> str:
    return run(directory, sys.executable, "-m", "pip", *arguments, **environment)
