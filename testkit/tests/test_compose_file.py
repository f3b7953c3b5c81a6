"""Reading the supported parts of a compose file, and refusing the others."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from testkit.containers.compose_file import ComposeFileError, HealthCheck, read_compose_file


def written(directory: Path, service: str) -> Path:
    file = directory / "compose.yaml"
    file.write_text(f"name: demo\nx-shared: {{}}\nservices:\n  only:\n    image: demo:1.0\n    {service}\n")
    return file


def test_variables_are_filled_in(tmp_path: Path) -> None:
    file = written(tmp_path, 'environment: {A: "${GIVEN:?give it}", B: "${MISSING:-default}", C: "$$HOME", D: "1"}')

    [container] = read_compose_file(file, {"GIVEN": "given"}).services.values()

    assert container.environment == {"A": "given", "B": "default", "C": "$HOME", "D": "1"}


@pytest.mark.parametrize("variables", [{}, {"GIVEN": ""}])
def test_a_variable_that_is_needed_is_named(tmp_path: Path, variables: dict[str, str]) -> None:
    file = written(tmp_path, 'environment: {A: "${GIVEN:?give it}"}')

    with pytest.raises(ComposeFileError, match="GIVEN is not set: give it"):
        read_compose_file(file, variables)


@pytest.mark.parametrize("service", ["network_mode: host", "stop_grace_period: 2m", "depends_on: {b: {condition: x}}"])
def test_what_the_runner_would_leave_out_is_refused(tmp_path: Path, service: str) -> None:
    with pytest.raises(ValidationError):
        read_compose_file(written(tmp_path, service), {})


def test_a_container_has_all_its_retries_to_become_healthy() -> None:
    check = HealthCheck(test=("CMD", "true"), interval="5s", timeout="3s", start_period="60s", retries=12)  # type: ignore[arg-type]

    assert check.command == ("true",)
    assert check.patience_s == 60 + 12 * (5 + 3)
