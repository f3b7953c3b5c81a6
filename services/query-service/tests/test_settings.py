"""Settings come from the environment, and a bad one is named."""

from pathlib import Path

import pytest

from query_service.settings import Settings
from statecast_service.errors import SettingsError
from statecast_service.settings import describe_settings, load_settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"QUERY_SERVICE_{name.upper()}", raising=False)


def test_the_defaults_run_locally() -> None:
    settings = load_settings(Settings)

    assert (settings.host, settings.metrics_host) == ("127.0.0.1", "127.0.0.1")
    assert settings.instance_name == settings.address == "127.0.0.1:50051"
    assert settings.shard_address == "127.0.0.1:50061"
    assert settings.stores.is_file()


def test_others_reach_the_instance_under_its_advertised_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERY_SERVICE_HOST", "0.0.0.0")
    monkeypatch.setenv("QUERY_SERVICE_ADVERTISED_HOST", "query-1.internal")
    monkeypatch.setenv("QUERY_SERVICE_INSTANCE", "query-1")
    settings = load_settings(Settings)

    assert (settings.address, settings.instance_name) == ("query-1.internal:50051", "query-1")


def test_an_empty_variable_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUERY_SERVICE_DATA_DIRECTORY", "")

    assert load_settings(Settings).data_directory == Path(".run/query-service")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"),
        ("REPLICAS", "0"),
        ("INSTANCE", "a|b"),
        ("ADVERTISED_HOST", "a|b"),
        ("SESSION_TIMEOUT_MS", "10"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_named_in_one_line(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"QUERY_SERVICE_{name}", value)
    with pytest.raises(SettingsError) as raised:
        load_settings(Settings)

    assert f"QUERY_SERVICE_{name}=" in str(raised.value)
    assert value in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("MAX_PAGE_SIZE", "10", "QUERY_SERVICE_DEFAULT_PAGE_SIZE is above"),
        ("MAX_CALL_MS", "10", "QUERY_SERVICE_CALL_TIMEOUT_MS is above"),
        ("MAX_IN_FLIGHT_MB", "19", "QUERY_SERVICE_MAX_IN_FLIGHT_MB has no room .*: raise it to 20"),
        ("PEER_TIMEOUT", "500", "QUERY_SERVICE_PEER_TIMEOUT: .*QUERY_SERVICE_PEER_TIMEOUT_MS"),
    ],
    ids=["page-sizes", "deadlines", "memory-of-the-largest-call", "unknown"],
)
def test_settings_that_contradict_each_other_or_are_unknown_are_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, reason: str
) -> None:
    monkeypatch.setenv(f"QUERY_SERVICE_{name}", value)

    with pytest.raises(SettingsError, match=reason):
        load_settings(Settings)


def test_every_setting_is_described() -> None:
    text = describe_settings(Settings)

    for name, field in Settings.model_fields.items():
        assert Settings.variable(name) in text
        assert field.description
