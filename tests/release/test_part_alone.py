"""A service is tested in a directory that has nothing but its folder; the other parts are published wheels."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PARTS = ("proto", "libs/service", "libs/domains", "clients/python", "testkit")
WHOLE_SUITE = {"cdc-simulator": 900, "query-service": 1500, "stream-processor": 3600, "ws-edge": 1500}
"""Seconds that all tests of a service may take, with its installation."""


def run(directory: Path, *command: str, **environment: str) -> str:
    """Runs a command without the variables of make and of pytest, and returns its output. It must succeed."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST", "MFLAGS"))}
    ended = subprocess.run(
        command, cwd=directory, env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{' '.join(command)}: {ended.stdout[-5000:]}{ended.stderr[-5000:]}"
    return ended.stdout


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
    """The variables that point pip to the published wheels, besides the registry for other packages."""
    wheels = tmp_path_factory.mktemp("index")
    edge_tests_need = "services/query-service"
    folders = [f"./{part}" for part in (*PARTS, edge_tests_need)]
    run(tree, sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), *folders)
    return {"PIP_FIND_LINKS": f"{wheels} {os.environ.get('PIP_FIND_LINKS', '')}", "PIP_NO_COMPILE": "1"}


def alone(tree: Path, service: str, directory: Path) -> Path:
    """Copies the folder of a service to a directory with nothing else."""
    return Path(shutil.copytree(tree / "services" / service, directory / service, symlinks=True))


@pytest.mark.stack
@pytest.mark.timeout(300)
def test_the_folder_of_a_service_and_published_wheels_are_enough(
    tree: Path, index: Mapping[str, str], tmp_path: Path
) -> None:
    folder = alone(tree, "cdc-simulator", tmp_path)
    output = run(folder, "make", "fast", **index)
    version = run(folder, ".venv/bin/cdc-simulator", "--version")

    assert " passed" in output
    assert version.startswith("cdc-simulator ")


@pytest.mark.long
@pytest.mark.stack
@pytest.mark.parametrize(
    "service", [pytest.param(name, marks=pytest.mark.timeout(limit)) for name, limit in WHOLE_SUITE.items()]
)
def test_all_tests_of_a_service_pass_in_its_folder_alone(
    service: str, tree: Path, index: Mapping[str, str], tmp_path: Path
) -> None:
    output = run(alone(tree, service, tmp_path), "make", "test", **index)

    assert " passed" in output
