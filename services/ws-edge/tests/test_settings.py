"""A wrong setting is refused by name before anything starts."""

from pathlib import Path

import pytest

from statecast_service.errors import SettingsError
from statecast_service.settings import load_settings
from ws_edge.settings import Settings


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_EDGE_GATEWAY_SECRET", "throw-away")


def test_the_defaults_serve_this_machine_alone() -> None:
    settings = load_settings(Settings)

    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert (settings.default_interval_ms, settings.min_interval_ms) == (1000, 100)


def test_all_that_a_consumer_or_an_address_may_watch_may_be_asked_for_at_once() -> None:
    """Each watch costs as much as a frame. Resuming within one limit would else run into the other."""
    settings = load_settings(Settings)

    assert settings.consumer_frames_per_s * settings.frames_burst_s >= settings.consumer_rows
    assert settings.address_frames_per_s * settings.frames_burst_s >= settings.address_rows
    assert settings.consumer_sockets * settings.max_watches >= settings.consumer_rows


@pytest.mark.parametrize(("text", "addresses"), [("a:1, b:2,", ("a:1", "b:2")), ("", ("127.0.0.1:50051",))])
def test_addresses_are_a_list_with_commas_and_an_empty_variable_counts_as_unset(
    monkeypatch: pytest.MonkeyPatch, text: str, addresses: tuple[str, ...]
) -> None:
    monkeypatch.setenv("WS_EDGE_QUERY_ADDRESSES", text)

    assert load_settings(Settings).query_addresses == addresses


def test_the_secret_is_required_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "throw-away" not in repr(load_settings(Settings))

    for text in (None, "", "short"):
        if text is None:
            monkeypatch.delenv("WS_EDGE_GATEWAY_SECRET")
        else:
            monkeypatch.setenv("WS_EDGE_GATEWAY_SECRET", text)
        with pytest.raises(SettingsError, match="WS_EDGE_GATEWAY_SECRET") as refusal:
            load_settings(Settings)
        assert "'short'" not in str(refusal.value)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("WS_EDGE_PORT", "http"),
        ("WS_EDGE_PORT", "70000"),
        ("WS_EDGE_QUERY_ADDRESSES", "localhost"),
        ("WS_EDGE_QUERY_ADDRESSES", ","),
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
        load_settings(Settings)
    assert "\n" not in str(refusal.value)


def test_all_mistakes_are_named_at_once_and_an_unknown_variable_with_its_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WS_EDGE_PORT", "http")
    monkeypatch.setenv("WS_EDGE_GATEWAY_SECRET", "short-a,short-b")
    monkeypatch.setenv("WS_EDGE_MAX_SOCKET", "5")

    with pytest.raises(SettingsError) as refusal:
        load_settings(Settings)
    text = str(refusal.value)
    assert "WS_EDGE_PORT='http'" in text
    assert "WS_EDGE_GATEWAY_SECRET: " in text
    assert "short-a" not in text
    assert "WS_EDGE_MAX_SOCKET: there is no such variable; did you mean WS_EDGE_MAX_SOCKETS?" in text


def test_every_setting_is_described() -> None:
    for field in Settings.model_fields.values():
        assert field.description


@pytest.mark.parametrize(
    "secret", ["demo-gateway-secret", "only-31-bytes-of-secret-are-few", "operator-demo-secret-of-32-characters"]
)
def test_beyond_this_machine_secrets_are_long_and_not_those_of_the_demonstration(
    monkeypatch: pytest.MonkeyPatch, secret: str
) -> None:
    monkeypatch.setenv("WS_EDGE_GATEWAY_SECRET", f"a-secret-of-our-own-with-32-bytes,{secret}")
    assert load_settings(Settings).gateway_secrets[1] == secret

    monkeypatch.setenv("WS_EDGE_HOST", "0.0.0.0")
    with pytest.raises(
        SettingsError, match=r"^WS_EDGE_GATEWAY_SECRET: with WS_EDGE_HOST=0\.0\.0\.0 each must be"
    ) as refusal:
        load_settings(Settings)

    assert secret not in str(refusal.value)


def test_the_directory_of_domains_must_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WS_EDGE_DOMAINS", str(tmp_path / "none"))

    with pytest.raises(SettingsError, match=r"WS_EDGE_DOMAINS='.*/none': Path does not point to a directory"):
        load_settings(Settings)
