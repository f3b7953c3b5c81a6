"""One Dockerfile builds the image of a part, both in the repository and from its folder alone."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from zipfile import ZipFile

import pytest

from testkit.release.image_context import PARTS, copied, make_context

ROOT = Path(__file__).parents[2]
FOLDERS = sorted(path.parent for path in ROOT.glob("*/*/Dockerfile") if (path.parent / "pyproject.toml").exists())


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small wheels with the names of the parts, where pip finds them; it asks no registry."""
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for name in PARTS.values():
        module = name.replace("-", "_")
        with ZipFile(wheels / f"{module}-0.3.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(
                f"{module}-0.3.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.3.0\n"
            )
            wheel.writestr(
                f"{module}-0.3.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            wheel.writestr(f"{module}-0.3.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(wheels))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return wheels


def test_the_context_has_what_each_dockerfile_copies(published: Path, tmp_path: Path) -> None:
    assert {"cdc-simulator", "jobs"} <= {each.name for each in FOLDERS}
    for each in FOLDERS:
        folder = shutil.copytree(each, tmp_path / each.name, ignore=shutil.ignore_patterns("target"))
        context = make_context(folder, tmp_path / "contexts" / each.name)
        missing = [place for place in copied((folder / "Dockerfile").read_text()) if not (context / place).exists()]

        assert missing == []


def test_pip_takes_a_published_wheel_for_the_folder_of_another_part(published: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(ROOT / "services" / "cdc-simulator", tmp_path / "cdc-simulator")
    context = make_context(folder, tmp_path / "context")
    built = ["wheel", "-q", "--no-deps", "-w", str(tmp_path / "built"), "./proto"]
    subprocess.run([sys.executable, "-m", "pip", *built], cwd=context, check=True)

    (wheel,) = (tmp_path / "built").iterdir()
    assert wheel.read_bytes() == (published / wheel.name).read_bytes()


def test_the_image_of_a_release_has_its_wheel(published: Path, tmp_path: Path) -> None:
    released = published / "cdc_simulator-0.2.0-py3-none-any.whl"
    released.write_bytes(b"the wheel that is recorded")
    context = make_context(ROOT / "services" / "cdc-simulator", tmp_path / "context", released)
    files = sorted(path.name for path in (context / "services" / "cdc-simulator" / "src").iterdir())

    assert files == ["backend.py", released.name]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_dockerfile_copies_the_parts_that_its_own_needs(folder: Path) -> None:
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    own = {each.partition(">")[0] for each in project["dependencies"] if each.startswith("statecast-")}
    places = copied((folder / "Dockerfile").read_text())

    assert {PARTS[place] for place in places if place in PARTS} == own
