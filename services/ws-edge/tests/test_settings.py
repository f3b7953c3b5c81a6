"""A wrong setting is refused by name before anything starts."""

from pathlib import Path

import pytest

from ws_edge.errors import SettingsError
from ws_edge.settings import Settings, read


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_EDGE_GATEWAY_SECRET", "throw-away")


def test_the_defaults_serve_this_machine_alone() -> None:
    settings = read()

    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert settings.query_addresses == ("127.0.0.1:50051",)
    assert (settings.default_interval_ms, settings.min_interval_ms) == (1000, 100)


def test_addresses_are_a_list_with_commas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_EDGE_QUERY_ADDRESSES", "a:1, b:2,")

    assert read().query_addresses == ("a:1", "b:2")


def test_the_secret_is_required_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "throw-away" not in repr(read())

    monkeypatch.delenv("WS_EDGE_GATEWAY_SECRET")
    with pytest.raises(SettingsError, match="WS_EDGE_GATEWAY_SECRET"):
        read()
    monkeypatch.setenv("WS_EDGE_GATEWAY_SECRET", "short")
    with pytest.raises(SettingsError, match="WS_EDGE_GATEWAY_SECRET") as refusal:
        read()
    assert "'short'" not in str(refusal.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WS_EDGE_PORT", "http"),
        ("WS_EDGE_PORT", "70000"),
        ("WS_EDGE_QUERY_ADDRESSES", "localhost"),
        ("WS_EDGE_QUERY_ADDRESSES", ""),
        ("WS_EDGE_MAX_FRAME_BYTES", "1"),
        ("WS_EDGE_DEFAULT_INTERVAL_MS", "50"),
        ("WS_EDGE_ORIGINS", "app.example.org"),
        ("WS_EDGE_ORIGINS", "https://app.example.org/"),
        ("WS_EDGE_GATEWAY_SECRET", "long-enough,short"),
    ],
)
def test_a_wrong_value_is_refused_on_one_line_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)

    with pytest.raises(SettingsError, match=variable) as refusal:
        read()
    assert "\n" not in str(refusal.value)


def test_every_setting_is_described_where_it_is_and_in_the_readme() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for name, field in Settings.model_fields.items():
        (line,) = [line for line in readme.splitlines() if line.startswith(f"| `WS_EDGE_{name.upper()}` ")]

        assert field.description
        assert line.endswith(f"| {field.description} |")
