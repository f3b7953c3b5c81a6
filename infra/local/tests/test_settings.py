"""The settings."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from local_stack.settings import ROOT, Settings


def test_the_defaults_run_in_the_repository() -> None:
    settings = Settings()

    assert settings.directory == ROOT / ".run"
    assert (ROOT / "Makefile").exists()


def test_settings_travel_to_another_process_through_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = Settings(directory=tmp_path, rate=12.5, replicas=1, checkpoint_interval="10s", edge_2_port=4321)

    for name, value in settings.as_environment().items():
        monkeypatch.setenv(name, value)

    assert Settings() == settings


def test_a_bad_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_STACK_REPLICAS", "three")

    with pytest.raises(ValidationError, match="replicas"):
        Settings()


def test_every_instance_has_ports_of_its_own() -> None:
    settings = Settings(query_1_port=1, query_2_port=2, edge_1_port=3, edge_2_port=4)

    assert (settings.query_ports(1)[0], settings.query_ports(2)[0]) == (1, 2)
    assert (settings.edge_port(1), settings.edge_port(2)) == (3, 4)
