"""Finds ports of 127.0.0.1 that nothing listens on, and gives none of them to two callers at once.

Each process draws from a block of its own, so test runs that go on side by side do not meet either.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import cycle, islice

SERVER_PORTS = range(12_000, 32_000)
"""Below the ports that systems give to outgoing connections, so that none takes the port of a server that restarts."""

BLOCK_SIZE = 500
"""A process gives a port again only after so many others; what had it before has ended by then."""


def free_ports(count: int) -> list[int]:
    """Returns `count` different ports that were free a moment ago, and that no other caller has been given lately."""
    return list(islice(filter(is_free, _ports_of_process(os.getpid())), count))


def free_port() -> int:
    """Returns a port that was free a moment ago, and that no other caller has been given lately."""
    (port,) = free_ports(1)
    return port


def is_free(port: int) -> bool:
    """Returns whether a server could listen on the port of 127.0.0.1 now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


@cache
def _ports_of_process(process_id: int) -> Iterator[int]:
    """Takes a block for a process until it ends: the UDP port beside the block's first port is held as its lock."""
    starts = SERVER_PORTS[::BLOCK_SIZE]
    first = process_id % len(starts)
    for start in (*starts[first:], *starts[:first]):
        with socket.socket(type=socket.SOCK_DGRAM) as lock, suppress(OSError):
            lock.bind(("127.0.0.1", start))
            lock.detach()  # the process holds it from now on
            return cycle(range(start, start + BLOCK_SIZE))
    raise OSError(f"all {len(starts)} blocks of ports in {SERVER_PORTS} are taken; end the test runs that hold them")
