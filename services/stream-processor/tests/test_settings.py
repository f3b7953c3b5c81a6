"""Settings from the environment."""

from datetime import timedelta

import pytest

from statecast_service.errors import SettingsError
from statecast_service.settings import load_settings
from stream_processor.settings import Settings


def test_the_defaults_run_locally() -> None:
    settings = load_settings(Settings)

    assert (settings.kafka_bootstrap, settings.metrics_host, settings.metrics_port) == (
        "127.0.0.1:9092",
        "127.0.0.1",
        9102,
    )
    assert settings.jars.parts[-3:] == ("jvm", "target", "jars")


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_CHECKPOINT_INTERVAL", "10s")

    assert load_settings(Settings).checkpoint_interval == timedelta(seconds=10)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("STREAM_PROCESSOR_METRICS_PORT", "70000"),
        ("STREAM_PROCESSOR_METRICS_PORT", "http"),
        ("STREAM_PROCESSOR_DRIVER_MEMORY", "much"),
        ("STREAM_PROCESSOR_CHECKPOINT_INTERVAL", "soon"),
        ("STREAM_PROCESSOR_CHECKPOINT_INTERVAL", "1s"),
        ("STREAM_PROCESSOR_KAFKA_BOOTSTRAP", ""),
    ],
)
def test_a_bad_value_names_its_variable(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(SettingsError) as caught:
        load_settings(Settings)

    assert str(caught.value).startswith(f"{variable}={value!r}: ")


def test_options_for_java_can_be_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_JAVA_OPTIONS", "")

    assert load_settings(Settings).java_options == ""
