"""Ports."""

import socket

import pytest

from local_stack.errors import PortInUseError
from local_stack.ports import assign_ports, free_ports, is_free
from local_stack.settings import PortSettings


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)


def test_a_port_that_something_listens_on_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_every_server_gets_a_port_of_its_own() -> None:
    (given,) = free_ports(1)

    assigned = assign_ports(PortSettings(gateway_https_port=given))

    assert assigned["gateway_https_port"] == given
    assert assigned.keys() == PortSettings.model_fields.keys()
    assert len(set(assigned.values())) == len(assigned)


def test_a_taken_port_is_refused_by_the_name_of_its_setting() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        with pytest.raises(PortInUseError, match=f"port {port} is in use: .*LOCAL_STACK_GATEWAY_HTTP_PORT"):
            assign_ports(PortSettings(gateway_http_port=port))


def test_a_port_that_two_settings_ask_for_is_refused() -> None:
    (port,) = free_ports(1)

    with pytest.raises(PortInUseError, match="LOCAL_STACK_EDGE_1_PORT and LOCAL_STACK_KAFKA_PORT both ask"):
        assign_ports(PortSettings(kafka_port=port, edge_1_port=port))
