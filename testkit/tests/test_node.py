"""A node starts on a machine that has none, and says so before anything is built for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.kubernetes.node import NodeRunsError, check_machine
from testkit.kubernetes.programs import programs_directory

SUITE = Path(__file__).parents[2] / "tests" / "kubernetes"


def test_a_directory_of_an_earlier_node_is_named(tmp_path: Path) -> None:
    with pytest.raises(NodeRunsError, match=f"remove {tmp_path} and the link statecast-node"):
        check_machine(tmp_path)


def test_the_suite_looks_for_an_earlier_node_before_it_builds_anything(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "CONTAINER_ENGINE": str(engine(tmp_path))}
    environment.pop("KUBECONFIG", None)
    left = programs_directory(environment) / "node"
    left.mkdir(parents=True)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-p", "no:cacheprovider", str(SUITE / "test_executors.py")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert f"NodeRunsError: a node runs, or was not stopped: remove {left}" in ended.stdout
    assert (tmp_path / "calls").read_text() == "info\n"
    assert [*left.parent.iterdir()] == [left]


def engine(directory: Path) -> Path:
    """Writes an engine that answers, and notes each command that it gets."""
    program = directory / "engine"
    program.write_text(f'#!/bin/sh\necho "$@" >> {directory}/calls\n')
    program.chmod(0o755)
    return program
