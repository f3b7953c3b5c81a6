"""The wheels of all parts, as a release would publish them."""

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from published_wheels import published

ROOT = Path(__file__).parents[2]
LIBRARIES = ("proto", "libs/service", "libs/domains", "clients/python", "testkit", "tools/onboarding")
SERVICES = ("services/query-service", "services/stream-processor", "services/ws-edge")
PARTS = (*LIBRARIES, *SERVICES)


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the repository without build results, from which wheels are published."""
    directory = tmp_path_factory.mktemp("tree")
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).exists():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, directory / name, follow_symlinks=False)
    return directory


@pytest.fixture(scope="session")
def index(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The variables that point pip to the published wheels of all parts."""
    return published(tree, tmp_path_factory.mktemp("index"), PARTS)
