"""The wheel of a part has each file of its packages, not the Python modules alone."""

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = sorted(
    file.parent
    for file in ROOT.glob("*/*/pyproject.toml")
    if (file.parent / "src").is_dir() and "setuptools" in tomllib.loads(file.read_text())["tool"]
)
"""Without the test kit: its parts that need such files need the repository, too."""


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_files_beside_the_modules_are_package_data(part: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "src"], cwd=part, capture_output=True, text=True, check=True)
    beside = {part / name for name in listed.stdout.splitlines() if not name.endswith(".py")}
    patterns = tomllib.loads((part / "pyproject.toml").read_text())["tool"]["setuptools"].get("package-data", {})
    packed = {
        file
        for package, globs in patterns.items()
        for pattern in globs
        for file in (part / "src" / package.replace(".", "/")).glob(pattern)
    }

    assert sorted(map(str, beside - packed)) == []
