"""The settings."""

from pathlib import Path

import pytest

from cdc_simulator.domains import choose_domain
from cdc_simulator.settings import Settings
from statecast_service.errors import SettingsError
from statecast_service.settings import describe_settings, load_settings


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for field in Settings.model_fields:
        monkeypatch.delenv(f"CDC_SIMULATOR_{field.upper()}", raising=False)


def test_the_defaults_run_locally() -> None:
    settings = load_settings(Settings)

    assert (settings.kafka_bootstrap, settings.topics()) == ("127.0.0.1:9092", {"orders": "orders"})
    assert settings.database_file() == Path(".run/cdc-simulator/orders.sqlite3")
    assert (settings.seed, settings.rows, settings.customers, settings.items) == (1, 1000, 100, 200)
    assert (settings.rate, settings.limit) == (50, 0)
    assert (settings.metrics_host, settings.metrics_port) == ("127.0.0.1", 9101)


def test_each_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SIMULATOR_DATABASE", "somewhere/else.sqlite3")
    monkeypatch.setenv("CDC_SIMULATOR_RATE", "0.5")

    assert (load_settings(Settings).database_file(), load_settings(Settings).rate) == (
        Path("somewhere/else.sqlite3"),
        0.5,
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("RATE", "fast"),
        ("RATE", "-1"),
        ("RATE", "nan"),
        ("RATE", "inf"),
        ("ROWS", "0"),
        ("SEED", "-1"),
        ("SEED", "99999999999999999999"),
        ("LIMIT", "-1"),
        ("METRICS_PORT", "70000"),
        ("TOPIC", "two words"),
        ("TOPIC", "{table}"),
        ("DOMAIN", "order"),
        ("LOG_LEVEL", "loud"),
    ],
)
def test_a_bad_value_is_one_line_naming_the_variable_and_the_value(
    field: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"CDC_SIMULATOR_{field}", value)

    with pytest.raises(SettingsError) as caught:
        load_settings(Settings)

    assert str(caught.value).startswith(f"CDC_SIMULATOR_{field}='{value}': ")
    assert "\n" not in str(caught.value)


def test_a_domain_has_its_own_file_and_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SIMULATOR_DOMAIN", "odds")
    settings = load_settings(Settings)

    assert settings.database_file() == Path(".run/cdc-simulator/odds.sqlite3")
    assert settings.topics() == {"matches": "matches", "markets": "markets"}


def test_the_argument_goes_before_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SIMULATOR_DOMAIN", "odds")

    assert choose_domain(load_settings(Settings, domain="bookings").domain).name == "bookings"


def test_topics_can_be_renamed_and_two_tables_need_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_SIMULATOR_TOPIC", "try-{topic}-7")
    renamed = load_settings(Settings, domain="odds").topics()
    monkeypatch.setenv("CDC_SIMULATOR_TOPIC", "all")

    assert renamed == {"matches": "try-matches-7", "markets": "try-markets-7"}
    assert load_settings(Settings, domain="orders").topics() == {"orders": "all"}
    with pytest.raises(SettingsError, match=r"^CDC_SIMULATOR_TOPIC='all': the domain odds has the tables matches, m"):
        load_settings(Settings, domain="odds").topics()


def test_the_help_describes_every_variable() -> None:
    for field in Settings.model_fields.values():
        assert field.description
        assert field.description in describe_settings(Settings)
