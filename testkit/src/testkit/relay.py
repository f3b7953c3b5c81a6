"""A relay of connections that can cut and delay them, as a network does."""

import asyncio
from types import TracebackType
from typing import Self


class Relay:
    """Passes bytes between its own port and a target: `async with Relay("127.0.0.1:8080") as relay`."""

    def __init__(self, target: str, delay_s: float = 0.0, port: int = 0) -> None:
        """Nothing passes through a connection before it is `delay_s` old. Port 0 is one that is free."""
        self._target = target
        self._port = port
        self.passed_bytes = 0
        self._delay_s = delay_s
        self._passing: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self.address = f"127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        assert self._server is not None
        self._server.close()
        await self.cut()

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._passing)

    async def cut(self) -> None:
        """Ends every connection without a closing handshake; new ones are accepted."""
        for task in tuple(self._passing):
            task.cancel()
        await asyncio.gather(*self._passing, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._passing.add(task)
        host, _, port = self._target.rpartition(":")
        ends = [writer]
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
            ends.append(far_writer)
            await asyncio.sleep(self._delay_s)
            await asyncio.wait(
                [
                    asyncio.ensure_future(self._pass(reader, far_writer)),
                    asyncio.ensure_future(self._pass(far_reader, writer)),
                ],
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            return  # cut; the ends see it below
        finally:
            self._passing.discard(task)
            for end in ends:
                end.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                self.passed_bytes += len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            return  # the other end sees it
