"""A call that is cancelled leaves nothing behind."""

import asyncio
import ctypes
import gc
from collections.abc import AsyncIterator
from functools import partial

import pytest

from statecast_client.errors import StatecastError
from statecast_client.router import Router, call_batch
from testkit.waiting import wait_until_async

CALLS = 500
FEW_TASKS = 10
LEAKED_BYTES = 800
"""grpcio keeps more than this of a call if the task that waits for it is cancelled."""


SETTINGS = b"\0\0\0\4\0\0\0\0\0"
"""An empty frame of this type, by which a server of HTTP/2 begins (RFC 9113, 3.4)."""


@pytest.fixture
async def silent_address() -> AsyncIterator[str]:
    """The address of a server that accepts connections and calls, and answers none."""

    connections: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        writer.write(SETTINGS)
        while await reader.read(65_536):
            continue

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    for connection in connections:
        connection.close()
        await connection.wait_closed()


FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class Mallinfo(ctypes.Structure):
    """Figures of glibc about the memory that it has handed out (mallinfo2(3))."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in FIELDS)


def allocated_bytes() -> int:
    mallinfo = ctypes.CDLL("libc.so.6").mallinfo2
    mallinfo.restype = Mallinfo
    gc.collect()
    return int(mallinfo().uordblks)


async def cancel_calls(router: Router, address: str) -> None:
    call = partial(call_batch, b"")
    tasks = [asyncio.create_task(router.call_at(address, call, 60)) for _ in range(CALLS)]
    await asyncio.sleep(0.2)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    await wait_until_async(lambda: len(asyncio.all_tasks()) < FEW_TASKS, "grpcio still waits for the ends of the calls")

    assert all(task.cancelled() for task in tasks)


async def test_a_cancelled_call_gives_back_its_memory(silent_address: str) -> None:
    router = Router([silent_address])
    await cancel_calls(router, silent_address)
    before = allocated_bytes()
    for _ in range(4):
        await cancel_calls(router, silent_address)
    growth = allocated_bytes() - before
    await router.close()

    assert growth < 4 * CALLS * LEAKED_BYTES / 2


async def test_a_call_whose_connection_is_closed_has_failed_and_its_caller_goes_on(silent_address: str) -> None:
    router = Router([silent_address])
    calling = asyncio.create_task(router.call("store", None, partial(call_batch, b""), (60, 60)))
    await asyncio.sleep(0.2)
    await router.close()

    with pytest.raises(StatecastError, match="connection was closed"):
        await calling
