"""Reads a checkpoint of a partition from an instance into a directory: for seeds and backups."""

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import grpc

from query_service.errors import SeedError
from query_service.metrics import Metrics
from query_service.server.shard_channel import shard_channel
from query_service.storage.checkpoints import is_file_name
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast_service.tls import Tls

PIECE_BYTES = 256 << 10
"""Small, so that a piece holds up neither of the two event loops for long."""
_WINDOW = 4
_CREATE_S = 30.0
_CALL_S = 20.0
_RESUME_S = 5.0
_RETRY_S = 0.2
_BREAKS = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.RESOURCE_EXHAUSTED)

_APART = ("grpc.use_local_subchannel_pool", 1)  # a connection of its own: pieces hold up no lookups


class BusyError(SeedError):
    """The peer gives as many partitions as it may."""


class RefusedError(SeedError):
    """The peer gives no checkpoint of this store, now or later."""


_REFUSALS: dict[grpc.StatusCode, type[SeedError]] = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: BusyError,
    grpc.StatusCode.FAILED_PRECONDITION: RefusedError,
}


class _Part(NamedTuple):
    file: str
    offset: int
    length: int


@asynccontextmanager
async def shard_stub(address: str, tls: Tls | None) -> AsyncIterator["shard_grpc.ShardServiceAsyncStub"]:
    """Connects to the internal service of an instance for as long as the block lasts."""
    async with shard_channel(address, tls, _APART) as channel:
        yield shard_grpc.ShardServiceStub(channel)


@dataclass(eq=False)
class CheckpointReader:
    """Reads checkpoints of one instance. All methods raise SeedError, which names the instance."""

    stub: "shard_grpc.ShardServiceAsyncStub"
    peer: str
    monotonic: Callable[[], float]
    metrics: Metrics | None = None

    @asynccontextmanager
    async def checkpoint(self, store: str, partition: int) -> AsyncIterator[shard.CreateCheckpointResponse]:
        """Has the instance make a checkpoint, and delete it after the block. Raises BusyError or RefusedError."""
        request = shard.CreateCheckpointRequest(store=store, partition=partition)
        try:
            created = await self.stub.CreateCheckpoint(request, timeout=_CREATE_S)
        except grpc.aio.AioRpcError as error:
            raise _REFUSALS.get(error.code(), SeedError)(f"{self.peer}: {error.details()}") from error
        try:
            yield created
        finally:
            with suppress(grpc.aio.AioRpcError):  # it deletes unread files by itself
                deletion = shard.DeleteCheckpointRequest(checkpoint_id=created.checkpoint_id)
                await self.stub.DeleteCheckpoint(deletion, timeout=_RETRY_S)

    async def read(self, checkpoint: shard.CreateCheckpointResponse, directory: Path) -> None:
        """Writes all files into an empty directory. After a break it goes on with the bytes that are missing.

        It gives up when the instance does not answer for some seconds, has lost the checkpoint, or sends other bytes
        than it read. Also raises OSError.
        """
        parts = self._parts(checkpoint)
        for file in checkpoint.files:
            with (directory / _checked(file.name, self.peer)).open("wb") as opened:
                opened.truncate(file.size)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_WINDOW):
                    group.create_task(self._read_parts(checkpoint, directory, parts))
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from failures

    async def _read_parts(
        self, checkpoint: shard.CreateCheckpointResponse, directory: Path, parts: Iterator[_Part]
    ) -> None:
        for part in parts:  # one iterator for all tasks: each takes the next that nobody has taken
            data = await self._read_part(checkpoint, part)
            await asyncio.to_thread(_write, directory / part.file, data, part.offset)
            if self.metrics is not None:
                self.metrics.seed_bytes.labels("taken").inc(len(data))

    async def _read_part(self, checkpoint: shard.CreateCheckpointResponse, part: _Part) -> bytes:
        request = shard.ReadCheckpointRequest(checkpoint_id=checkpoint.checkpoint_id, **part._asdict())
        until = self.monotonic() + _RESUME_S
        while True:
            try:
                answer = await self.stub.ReadCheckpoint(request, timeout=_CALL_S)
            except grpc.aio.AioRpcError as error:
                if error.code() not in _BREAKS or self.monotonic() >= until:
                    raise SeedError(f"{self.peer}: {error.code().name} {error.details()}") from error
                await asyncio.sleep(_RETRY_S)
                continue
            if len(answer.data) != part.length or zlib.crc32(answer.data) != answer.crc32:
                raise SeedError(f"{self.peer} sent other bytes of `{part.file}` at {part.offset} than it has read")
            return answer.data

    def _parts(self, checkpoint: shard.CreateCheckpointResponse) -> Iterator[_Part]:
        return (
            _Part(file.name, offset, min(PIECE_BYTES, file.size - offset))
            for file in checkpoint.files
            for offset in range(0, file.size, PIECE_BYTES)
        )


def _checked(name: str, peer: str) -> str:
    if not is_file_name(name):
        raise SeedError(f"{peer} names a file `{name}`, which would lie outside of its directory")
    return name


def _write(path: Path, data: bytes, offset: int) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)
