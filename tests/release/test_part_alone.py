"""A service is tested in a directory that has nothing but its folder; the other parts are published wheels."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from published_wheels import published, run

OF_THE_SIMULATOR = ("proto", "libs/service", "testkit")
"""The parts of the repository that the cdc-simulator and its tests need."""
WHOLE_SUITE = {"cdc-simulator": 900, "query-service": 1500, "stream-processor": 3600, "ws-edge": 1500}
"""Seconds that all tests of a service may take, with its installation."""
SERVICES = Path(__file__).parents[2] / "services"


def alone(tree: Path, service: str, directory: Path) -> Path:
    """Copies the folder of a service to a directory with nothing else."""
    return Path(shutil.copytree(tree / "services" / service, directory / service, symlinks=True))


@pytest.mark.parametrize("service", WHOLE_SUITE)
def test_no_test_of_a_service_looks_for_a_file_outside_of_its_folder(service: str) -> None:
    folder = SERVICES / service
    roots = [
        (test, test.parents[int(steps)])
        for test in folder.rglob("tests/**/*.py")
        for steps in re.findall(r"__file__\).*\.parents\[(\d+)\]", test.read_text())
    ]

    assert roots
    assert [test for test, root in roots if not root.is_relative_to(folder)] == []


@pytest.mark.stack
@pytest.mark.timeout(300)
def test_the_folder_of_a_service_and_published_wheels_are_enough(tree: Path, tmp_path: Path) -> None:
    folder = alone(tree, "cdc-simulator", tmp_path)
    output = run(folder, "make", "fast", **published(tree, tmp_path / "wheels", OF_THE_SIMULATOR))
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
