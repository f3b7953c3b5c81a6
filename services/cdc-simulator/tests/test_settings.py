"""The settings."""

from pathlib import Path

import pytest

from cdc_simulator.errors import SettingsError
from cdc_simulator.settings import Settings, describe_settings, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(f"CDC_SIMULATOR_{field.upper()}", raising=False)


def test_the_defaults_run_locally() -> None:
    settings = load_settings()

    assert (settings.kafka_bootstrap, settings.topic) == ("127.0.0.1:9092", "orders")
    assert (settings.seed, settings.orders, settings.customers, settings.items) == (1, 1000, 100, 200)
    assert (settings.rate, settings.limit) == (50, 0)
    assert (settings.metrics_host, settings.metrics_port) == ("127.0.0.1", 9101)


def test_each_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SIMULATOR_DATABASE", "somewhere/else.sqlite3")
    monkeypatch.setenv("CDC_SIMULATOR_RATE", "0.5")

    assert (load_settings().database, load_settings().rate) == (Path("somewhere/else.sqlite3"), 0.5)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("RATE", "fast"),
        ("RATE", "-1"),
        ("RATE", "nan"),
        ("RATE", "inf"),
        ("ORDERS", "0"),
        ("SEED", "-1"),
        ("SEED", "99999999999999999999"),
        ("LIMIT", "-1"),
        ("METRICS_PORT", "70000"),
        ("TOPIC", "two words"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_one_line_naming_the_variable_and_the_value(
    field: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"CDC_SIMULATOR_{field}", value)

    with pytest.raises(SettingsError) as caught:
        load_settings()

    assert str(caught.value).startswith(f"CDC_SIMULATOR_{field}='{value}': ")
    assert "\n" not in str(caught.value)


def test_the_help_describes_every_variable() -> None:
    for field in Settings.model_fields.values():
        assert field.description
        assert field.description in describe_settings()
