"""Seeds a partition that is not on disk: takes it from a peer that serves it, instead of reading all of the topic."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog

from query_service.cluster.shard_map import Member
from query_service.cluster.view import View
from query_service.errors import SeedError, StoreFailedError
from query_service.metrics import Metrics
from query_service.reads.routed_peer import Held
from query_service.server.checkpoint_reader import BusyError, CheckpointReader, shard_stub
from query_service.storage.checkpoints import origin_of
from query_service.storage.store_directory import StoreDirectory, Topic
from query_service.storage.stores_file import StoreDefinition
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast_service.tls import Tls

_BUSY_S = 60.0
_BUSY_PAUSE_S = 0.3

_log = structlog.get_logger()


@dataclass(eq=False)
class Seeding:
    """Takes at most `max_seeds` partitions at a time. `held` returns a peer's partitions, none when not known.

    A peer gives its replica's state on disk: rows, markers and versions with the offset to go on from.
    It is opened as any directory is, so it serves once it has caught up, and by the same rules.
    """

    view: View
    directory: StoreDirectory
    held: Callable[[Member], Held]
    tls: Tls | None
    metrics: Metrics
    enabled: bool
    max_seeds: int
    monotonic: Callable[[], float]
    _places: asyncio.Semaphore = field(init=False)

    def __post_init__(self) -> None:
        self._places = asyncio.Semaphore(self.max_seeds)

    async def seed(self, definition: StoreDefinition, topic: Topic, partition: int) -> None:
        """Puts the partition of a peer where this instance's has no directory, or does nothing if no peer gives it.

        A peer that gives as many as it may is asked again for a minute.
        """
        if not self.enabled or definition.in_memory:
            return
        async with self._places:
            give_up_at = self.monotonic() + _BUSY_S
            seeded = await self._try_each(definition, topic, partition)
            while seeded is None and self.monotonic() < give_up_at:
                await asyncio.sleep(_BUSY_PAUSE_S)
                seeded = await self._try_each(definition, topic, partition)
        self.metrics.seeds.labels(definition.name, "peer" if seeded else "topic").inc()

    async def _try_each(self, definition: StoreDefinition, topic: Topic, partition: int) -> bool | None:
        """Returns whether a peer gave the partition, and None when one is busy that may give it later."""
        result: bool | None = False
        for member in self._candidates(definition.name, partition):
            try:
                await self._take(member, definition, topic, partition)
            except BusyError:
                result = None
            except (SeedError, StoreFailedError, OSError) as error:
                where = {"store": definition.name, "partition": partition}
                _log.info("cannot seed from a peer", peer=member.instance, reason=str(error), **where)
            else:
                return True
        return result

    def _candidates(self, store: str, partition: int) -> Iterable[Member]:
        for member in self.view.shard_map.ranked(store, partition):
            held = self.held(member) if member != self.view.me else {}
            serving, _ = held.get((store, partition), (not held, None))
            if member != self.view.me and serving:
                yield member

    async def _take(self, member: Member, definition: StoreDefinition, topic: Topic, partition: int) -> None:
        began_at = self.monotonic()
        async with shard_stub(member.shard_address, self.tls) as stub:
            reader = CheckpointReader(stub, member.instance, self.monotonic, self.metrics)
            async with reader.checkpoint(definition.name, partition) as checkpoint:
                _check_origin(member.instance, checkpoint, origin_of(definition, topic))
                with self.directory.unfinished(definition, partition) as unfinished:
                    await reader.read(checkpoint, unfinished)
                    await _to_the_end(asyncio.to_thread(self.directory.place, unfinished, definition, partition))
        _log.info(
            "seeded from a peer",
            store=definition.name,
            partition=partition,
            peer=member.instance,
            bytes=sum(file.size for file in checkpoint.files),
            next_offset=checkpoint.next_offset,
            seconds=round(self.monotonic() - began_at, 3),
        )


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Awaits work in a thread, and its end before a cancellation goes on: its files are removed then."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _check_origin(peer: str, checkpoint: shard.CreateCheckpointResponse, origin: dict[str, Any]) -> None:
    for name, our in origin.items():
        if (their := getattr(checkpoint, name)) != our:
            raise SeedError(f"its {name} is {their!r}, here {our!r}: {peer} has been started with something else")
