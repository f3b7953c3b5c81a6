"""Free ports."""

import os
import socket
import subprocess
import sys

from testkit.ports import free_port, free_ports, is_free


def test_free_ports_are_different_and_free() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(is_free(port) for port in ports)


def test_a_port_that_something_listens_on_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_a_single_free_port_is_free() -> None:
    assert is_free(free_port())


def test_no_port_is_given_twice_while_a_test_may_use_it() -> None:
    """Servers that start together each ask for ports before any of them listens."""
    ports = [free_port() for _ in range(400)]

    assert len(set(ports)) == len(ports)


def test_processes_side_by_side_are_given_different_ports() -> None:
    program = "from testkit.ports import free_ports; print(*free_ports(200)); input()"
    children = [
        subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    ports = {os.getpid(): free_ports(200)}
    for child in children:
        assert child.stdout is not None
        ports[child.pid] = [int(port) for port in child.stdout.readline().split()]
    for child in children:
        child.communicate("\n")

    assert len({port for taken in ports.values() for port in taken}) == 4 * 200
