"""One loader finds all mistakes at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest
from pydantic_settings import SettingsConfigDict

from statecast_service.errors import SettingsError
from statecast_service.settings import DescriptorSettings, describe_settings, load_settings, nearest, suggest

if TYPE_CHECKING:
    from conftest import Settings


def test_the_defaults_hold_where_nothing_is_set(settings_class: "type[Settings]") -> None:
    assert load_settings(settings_class).rate == 50


def test_each_field_comes_from_its_variable(settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_RATE", "0.5")
    monkeypatch.setenv("DEMO_NAMES", "x,y")

    settings = load_settings(settings_class)

    assert (settings.rate, settings.names) == (0.5, ("x", "y"))
    assert settings.variable("metrics_port") == "DEMO_METRICS_PORT"


def test_an_empty_variable_counts_as_unset(settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DEMO_RATE", "DEMO_TLS_KEY", "DEMO_SECRET", "DEMO_FORMER_NAME"):
        monkeypatch.setenv(name, "")

    settings = load_settings(settings_class)

    assert (settings.rate, settings.tls_key, settings.secret.get_secret_value()) == (50, None, "none")


def test_an_override_goes_before_the_variable(
    settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_RATE", "2")

    assert load_settings(settings_class, rate=3).rate == 3
    assert load_settings(settings_class, rate=None).rate == 2
    with pytest.raises(SettingsError, match=r"^DEMO_RATE='fast': "):
        load_settings(settings_class, rate="fast")


def test_all_mistakes_stand_in_one_line(settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_RATE", "fast")
    monkeypatch.setenv("DEMO_METRICS_PORT", "70000")
    monkeypatch.setenv("DEMO_NAMES", "none")
    monkeypatch.setenv("DEMO_METRIC_PORT", "1")

    with pytest.raises(SettingsError) as caught:
        load_settings(settings_class)

    unknown, port, rate, names = str(caught.value).split("; DEMO_")
    assert unknown == "DEMO_METRIC_PORT: there is no such variable; did you mean DEMO_METRICS_PORT?"
    assert port == "METRICS_PORT='70000': Input should be less than or equal to 65535"
    assert rate.startswith("RATE='fast': Input should be a valid number")
    assert names == "NAMES='none': somebody must be named"


def test_an_unknown_variable_is_an_error_although_none_is_near(
    settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_QQQQQQ", "1")

    with pytest.raises(SettingsError, match=r"^DEMO_QQQQQQ: there is no such variable$"):
        load_settings(settings_class)


def test_a_rule_over_two_fields_speaks_for_itself(
    settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEMO_SHORTEST", "10")

    with pytest.raises(SettingsError, match=r"^DEMO_SHORTEST is above DEMO_LONGEST: lower it$"):
        load_settings(settings_class)


def test_secrets_are_never_shown(settings_class: "type[Settings]", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEMO_SECRET", "abc")

    with pytest.raises(SettingsError, match=r"^DEMO_SECRET: ") as caught:
        load_settings(settings_class)

    assert "abc" not in str(caught.value)
    assert caught.value.__context__ is None


def test_a_setting_without_a_default_must_be_set(settings_class: "type[Settings]") -> None:
    class Strict(settings_class):  # type: ignore[misc, valid-type]
        token: str

    with pytest.raises(SettingsError, match=r"^DEMO_TOKEN: it must be set$"):
        load_settings(Strict)


def test_the_help_describes_every_variable(settings_class: "type[Settings]") -> None:
    text = describe_settings(settings_class)

    assert "  DEMO_RATE [50]\n      Changes a second." in text
    assert text.count("DEMO_") >= len(settings_class.model_fields)


def test_the_nearest_name_is_suggested() -> None:
    assert suggest("ordres", ["orders", "odds"]) == "did you mean orders?"


def test_all_names_are_listed_when_none_is_near() -> None:
    assert suggest("x", ["orders", "odds"]) == "one of: odds, orders"
    assert suggest("x", []) == "one of: none"


@pytest.mark.parametrize(
    ("wrong", "name"),
    [("gruop", "group"), ("limt", "limit"), ("Store", "store"), ("intervall", "interval_ms"), ("sortto", "sort_to")],
)
def test_a_name_is_near_with_letters_swapped_left_out_or_added(wrong: str, name: str) -> None:
    assert nearest(wrong, ["group", "limit", "store", "interval_ms", "sort_from", "sort_to"]) == name


class ReadName(str):
    """A name that counts how often its letters are read."""

    __slots__ = ()
    reads: ClassVar[int] = 0

    def __iter__(self) -> Iterator[str]:
        ReadName.reads += 1
        return super().__iter__()


def test_the_letters_of_names_are_not_read_again_for_each_wrong_one() -> None:
    """A frame of 1,665 watches with wrong names of stores held an edge with twenty stores for 1.7 s."""
    names = [ReadName(f"orders-by-{each}") for each in ("customer", "item", "key")]
    nearest("oders", names)
    before = ReadName.reads
    for number in range(100):
        assert nearest(f"oders-by-costumer-{number}", names) == "orders-by-customer"

    assert ReadName.reads == before


def test_a_name_of_any_length_is_compared_in_no_time() -> None:
    assert nearest("x" * 10_000_000, ["orders"] * 100) is None


def test_the_descriptors_have_one_variable_for_all_services(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Service(DescriptorSettings):
        """A service that takes them."""

        model_config = SettingsConfigDict(env_prefix="DEMO_", env_ignore_empty=False)

    def refuse(_: Path | None) -> None:
        raise ValueError("a.proto:1:1: no")

    monkeypatch.setenv("STATECAST_DESCRIPTORS", str(tmp_path))
    settings = load_settings(Service)

    assert settings.with_descriptors(lambda directory: directory) == tmp_path
    with pytest.raises(SettingsError, match=r"^STATECAST_DESCRIPTORS: a\.proto:1:1: no$"):
        settings.with_descriptors(refuse)
    monkeypatch.setenv("STATECAST_DESCRIPTORS", "")
    assert load_settings(Service).descriptors is None
    assert "STATECAST_DESCRIPTORS" in describe_settings(Service)
    monkeypatch.setenv("DEMO_DESCRIPTORS", "elsewhere")
    with pytest.raises(SettingsError, match=r"DEMO_DESCRIPTORS: there is no .*did you mean STATECAST_DESCRIPTORS\?"):
        load_settings(Service)
