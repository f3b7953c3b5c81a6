"""Which container engine is taken, and why none is."""

from pathlib import Path

import pytest

from testkit.containers.compose_file import read_compose_file
from testkit.containers.engine import ContainerError, Engine, NoEngineError, find_engine
from testkit.containers.images import COMPOSE_FILE, missing_bases


def program(directory: Path, name: str, script: str) -> Path:
    """Returns a program that stands for an engine."""
    file = directory / name
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only directory that programs are found in."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_the_first_engine_that_answers_is_taken(path: Path) -> None:
    program(path, "docker", "exit 1")
    program(path, "podman", "exit 0")

    assert find_engine({}) == Engine("podman")


def test_the_engine_that_the_environment_names_is_taken_or_none(path: Path) -> None:
    program(path, "docker", "exit 0")

    assert find_engine({"CONTAINER_ENGINE": "docker"}) == Engine("docker")
    with pytest.raises(NoEngineError, match="nerdctl is not installed"):
        find_engine({"CONTAINER_ENGINE": "nerdctl"})


def test_without_an_engine_the_reason_of_each_is_told(path: Path) -> None:
    program(path, "docker", "exit 1")

    with pytest.raises(NoEngineError, match="docker is installed, and `info` fails, podman is not installed"):
        find_engine({})


def test_a_command_that_fails_says_what_it_wrote(tmp_path: Path) -> None:
    engine = Engine(str(program(tmp_path, "engine", "echo out; echo err >&2; exit 3")))

    assert not engine.succeeds("run")
    with pytest.raises(ContainerError, match=r"engine run demo\nout\nerr"):
        engine.run("run", "demo")


@pytest.mark.parametrize(
    ("script", "missing"),
    [
        ('[ "$1" = image ]', []),
        ('[ "$1" = pull ]', []),
        ('[ "$1 $3" = "image own/python" ]', ["own/maven"]),
        ("exit 1", ["own/maven", "own/python"]),
    ],
)
def test_a_base_image_is_here_or_can_be_pulled_or_is_missing(tmp_path: Path, script: str, missing: list[str]) -> None:
    bases = {"PYTHON_IMAGE": "own/python", "MAVEN_IMAGE": "own/maven"}
    engine = Engine(str(program(tmp_path, "engine", script)))

    assert missing_bases(read_compose_file(COMPOSE_FILE, bases), engine) == missing
