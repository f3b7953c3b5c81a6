"""The settings and the ports."""

import socket
from pathlib import Path

import pytest
from pydantic import ValidationError

from cdc_simulator.domains import domain_names
from local_stack import LocalStackError
from local_stack.settings import ROOT, Settings
from statecast_service.errors import SettingsError
from statecast_service.settings import load_settings
from testkit.ports import free_ports


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


def test_one_domain_runs_unless_others_are_chosen() -> None:
    assert Settings().domains == ("orders",)
    assert Settings(domain="odds, bookings").domains == ("odds", "bookings")
    assert Settings(domain="all").domains == ("orders", "bookings", "invoices", "odds", "positions")


@pytest.mark.parametrize(
    ("domain", "advice"),
    [("odd", "'odd': did you mean odds"), ("odds,", "'': one of: "), ("odds,al", "did you mean all")],
)
def test_a_wrong_domain_is_refused_with_the_nearest(monkeypatch: pytest.MonkeyPatch, domain: str, advice: str) -> None:
    monkeypatch.setenv("LOCAL_STACK_DOMAIN", domain)

    with pytest.raises(SettingsError, match=f"LOCAL_STACK_DOMAIN: there is no domain .*{advice}"):
        load_settings(Settings)


def test_postgresql_is_refused_without_the_orders() -> None:
    with pytest.raises(ValidationError, match="LOCAL_STACK_SOURCE=postgres is of orders alone: add orders to"):
        Settings(domain="odds", source="postgres")

    assert Settings(domain="odds,orders", source="postgres").domains == ("odds", "orders")


def test_every_domain_with_a_simulator_has_a_port_for_it() -> None:
    assert set(Settings(domain="all").simulated) == set(domain_names())


def test_every_instance_has_ports_of_its_own() -> None:
    settings = Settings(query_1_port=1, query_2_port=2, edge_1_port=3, edge_2_port=4)

    assert [settings.port_of(name) for name in ("query-1", "query-2", "edge-1", "edge-2")] == [1, 2, 3, 4]
    assert settings.address_of("query-2") == "127.0.0.1:2"


def test_every_server_gets_a_port_of_its_own() -> None:
    (port,) = free_ports(1)

    settings = Settings(gateway_https_port=port).with_ports()

    ports = [value for name, value in settings if name.endswith("_port")]
    assert settings.gateway_https_port == port
    assert all(ports)
    assert len(set(ports)) == len(ports) == 21


def test_a_taken_port_is_refused_by_the_name_of_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(LocalStackError, match=f"port {port} is in use: .*LOCAL_STACK_GATEWAY_HTTP_PORT"):
            Settings(gateway_http_port=port).with_ports()


def test_a_port_that_two_settings_ask_for_is_refused() -> None:
    (port,) = free_ports(1)

    with pytest.raises(LocalStackError, match="LOCAL_STACK_KAFKA_PORT and LOCAL_STACK_EDGE_1_PORT both ask"):
        Settings(kafka_port=port, edge_1_port=port).with_ports()
