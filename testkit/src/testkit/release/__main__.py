"""Releases the part in the current directory: `python -m testkit.release VERSION`.

One commit has the version and the section of the changelog, and gets the tag `<part>/<version>`. Wheel and bill of
materials are built from it into `dist/` of the repository. A second commit records the release under `releases/`.
Nothing is pushed or published. After a failure the repository is as it was before. For a service, the image is then
built from the wheel; without a container engine only its context is made, and a line reports that.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from testkit.containers.engine import ContainerError
from testkit.release import artifacts
from testkit.release.artifacts import run
from testkit.release.image_context import build_image, make_context
from testkit.release.part_files import PartFolder, ReleaseError
from testkit.release.record import Record, read_record

CONTRACT = "statecast-contract"


def release(folder: Path, version: str, day: str) -> Path:
    """Releases a part, and returns the directory of its record. Raises ReleaseError, and then leaves no changes."""
    root = Path(run(folder, "git", "rev-parse", "--show-toplevel").strip())
    part = PartFolder(folder.resolve(), root.resolve())
    part.check(version)
    if run(root, "git", "status", "--porcelain", "--untracked-files=no"):
        raise ReleaseError("files are changed and not committed: commit them first")
    if run(root, "git", "tag", "--list", f"{part.name}/{version}"):
        raise ReleaseError(f"there is a tag {part.name}/{version}: choose another VERSION")
    before = run(root, "git", "rev-parse", "HEAD").strip()
    try:
        return _released(part, version, day)
    except BaseException:
        run(root, "git", "reset", "-q", "--hard", before)
        raise


def _released(part: PartFolder, version: str, day: str) -> Path:
    part.set_version(version, day)
    run(part.folder, "git", "commit", "-q", "--allow-empty", "-am", f"Release {part.name} {version}")
    commit = run(part.root, "git", "rev-parse", "HEAD").strip()
    prefix = str(part.folder.relative_to(part.root))
    with TemporaryDirectory() as scratch:
        wheel = artifacts.build_wheel(part.root, prefix, commit, Path(scratch) / "build", part.root / "dist")
    constraints = next((each for each in (part.folder, part.root) if (each / "constraints.txt").exists()), None)
    needed = artifacts.resolve(wheel, constraints and constraints / "constraints.txt")
    bill = wheel.parent / f"{part.name}-{version}.cdx.json"
    bill.write_text(artifacts.bill_of_materials(part.name, version, needed))
    versions = {each.name: each.version for each in needed} | {part.name: version}
    files = {file.name: artifacts.digest(file) for file in (wheel, bill)}
    record = Record(part.name, version, commit, versions.get(CONTRACT), files)
    exact = "".join(f"{name}=={number}\n" for name, number in versions.items() if name != part.name)
    directory = record.write(part.root / "releases", exact, artifacts.descriptors_of(wheel))
    run(part.root, "git", "add", str(directory))
    run(part.root, "git", "commit", "-q", "-m", f"Record the release of {part.name} {version}")
    run(part.root, "git", "tag", f"{part.name}/{version}", commit)
    return directory


def image_of(folder: Path, directory: Path) -> str:
    """Builds the image of a recorded release, and returns a line about it. Raises ReleaseError and ContainerError."""
    record, dist = read_record(directory), directory.parents[2] / "dist"
    (wheel,) = (dist / name for name in record.files if name.endswith(".whl"))
    context = make_context(folder, dist / f"{record.part}-{record.version}-image", wheel)
    return build_image(context, folder, record.version)


def main(arguments: Sequence[str] | None = None) -> int:
    """Releases the part in the current directory, and reports the paths of the results."""
    parser = argparse.ArgumentParser(prog="python -m testkit.release", description=__doc__)
    parser.add_argument("version", metavar="VERSION", help="the version to release, such as 0.2.0")
    options = parser.parse_args(arguments)
    folder = Path.cwd()
    try:
        directory = release(folder, options.version, datetime.now(UTC).date().isoformat())
        sys.stdout.write(f"released, with wheel and bill of materials in dist/; its record is {directory}\n")
        if (folder / "Dockerfile").exists():
            sys.stdout.write(f"{image_of(folder, directory)}\n")
    except (ReleaseError, ContainerError) as error:
        sys.stderr.write(f"release: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
