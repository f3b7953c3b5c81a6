"""Finds ports of 127.0.0.1 that nothing listens on, and gives every server of the stack one."""

import socket
from itertools import islice
from random import SystemRandom

from local_stack.errors import PortInUseError
from local_stack.settings import PortSettings

SERVER_PORTS = range(12_000, 32_000)
"""Below the ports that systems give to outgoing connections, so that none takes the port of a server that restarts."""


def free_ports(count: int) -> list[int]:
    """Returns `count` different ports that were free a moment ago."""
    candidates = SystemRandom().sample(SERVER_PORTS, len(SERVER_PORTS))
    return list(islice(filter(is_free, candidates), count))


def is_free(port: int) -> bool:
    """Whether a server could listen on the port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def assign_ports(ports: PortSettings) -> dict[str, int]:
    """Returns a port for every field of `ports`: the one that was asked for, or a free one where that is 0.

    Raises PortInUseError when a port that was asked for is taken, or was asked for twice.
    """
    asked = {name: getattr(ports, name) for name in PortSettings.model_fields}
    given = {name: port for name, port in asked.items() if port}
    holders: dict[int, str] = {}
    for name, port in given.items():
        if port in holders:
            raise PortInUseError(f"{_variable(name)} and {_variable(holders[port])} both ask for port {port}")
        holders[port] = name
        if not is_free(port):
            raise PortInUseError(
                f"port {port} is in use: end what listens there, or set {_variable(name)} to another port or to 0"
            )
    free = iter([port for port in free_ports(len(asked) + len(given)) if port not in holders])
    return {name: port or next(free) for name, port in asked.items()}


def _variable(name: str) -> str:
    return f"LOCAL_STACK_{name.upper()}"
