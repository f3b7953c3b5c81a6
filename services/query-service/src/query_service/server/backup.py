"""Takes a backup of all partitions that a running instance serves, over its internal port."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import grpc

from query_service.errors import BackupError, SeedError
from query_service.server.checkpoint_reader import BusyError, CheckpointReader, RefusedError, shard_stub
from query_service.storage.backup import replace_directory, write_manifest
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1.backup_pb2 import BackupManifest
from statecast_service.tls import Tls

_LIST_S = 10.0
_BUSY_ATTEMPTS = 200
_BUSY_PAUSE_S = 0.3


async def back_up(address: str, tls: Tls | None, directory: Path, wall_ms: Callable[[], int]) -> list[BackupManifest]:
    """Fills a directory, one partition after the other; each replaces its former backup when it is complete.

    Stores in memory are left out. Raises BackupError; partitions complete by then stay.
    """
    async with shard_stub(address, tls) as stub:
        try:
            listed = await stub.ListPartitions(shard.ListPartitionsRequest(), timeout=_LIST_S)
        except grpc.aio.AioRpcError as error:
            raise BackupError(f"no instance answers at {address}: {error.details()}") from error
        places = [(held.store, held.freshness.partition) for held in listed.partitions if held.serving]
        reader = CheckpointReader(stub, address, time.monotonic)
        taken = [await _take(reader, directory, store, partition, wall_ms) for store, partition in places]
    manifests = [manifest for manifest in taken if manifest is not None]
    if not manifests:
        raise BackupError(f"{address} serves no partition that is on disk")
    return manifests


async def _take(
    reader: CheckpointReader, directory: Path, store: str, partition: int, wall_ms: Callable[[], int]
) -> BackupManifest | None:
    for _ in range(_BUSY_ATTEMPTS):
        try:
            return await _take_now(reader, directory, store, partition, wall_ms)
        except RefusedError:
            return None
        except BusyError:
            await asyncio.sleep(_BUSY_PAUSE_S)
        except (SeedError, OSError) as error:
            raise BackupError(f"{store}/{partition} cannot be backed up: {error}") from error
    raise BackupError(f"{store}/{partition} cannot be backed up: the instance serves as many checkpoints as it may")


async def _take_now(
    reader: CheckpointReader, directory: Path, store: str, partition: int, wall_ms: Callable[[], int]
) -> BackupManifest:
    await asyncio.to_thread(directory.mkdir, parents=True, exist_ok=True)
    async with reader.checkpoint(store, partition) as checkpoint:
        taken_ms = wall_ms()
        with TemporaryDirectory(prefix=".unfinished-", dir=directory) as unfinished:
            files = Path(unfinished) / "files"
            files.mkdir()
            await reader.read(checkpoint, files)
            manifest = await asyncio.to_thread(write_manifest, files, store, partition, checkpoint, taken_ms)
            await asyncio.to_thread(replace_directory, files, directory / store / str(partition))
    return manifest
