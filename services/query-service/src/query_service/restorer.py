"""The child of a RestoreProcess: reads partitions from the topic into their directories, as the instance does."""

import asyncio
import math
import os
from dataclasses import replace
from multiprocessing.connection import Connection

import structlog
from prometheus_client import CollectorRegistry

from query_service.cluster.placement import ReplicaFactory
from query_service.cluster.restore_process import Asked, Restored
from query_service.errors import StoreFailedError
from query_service.instance import changelog_of, replica_factory
from query_service.metrics import Metrics
from query_service.settings import Settings
from query_service.storage.changelog import Changelog
from query_service.storage.topic_facts import TopicFacts
from statecast_service.collector import collect_seldom

_STALL_S = 10.0

_log = structlog.get_logger()


def serve_restores(settings: Settings, connection: Connection) -> None:
    """Restores the partitions that the parent names, until it is gone. Starts no thread before the first one."""
    try:
        first = connection.recv()
    except EOFError:
        return
    collect_seldom()
    asyncio.run(_serve(settings, connection, first))


async def _serve(settings: Settings, connection: Connection, first: Asked) -> None:
    asked: asyncio.Queue[Asked] = asyncio.Queue()
    asked.put_nowait(first)

    def read() -> None:
        try:
            asked.put_nowait(connection.recv())
        except EOFError:
            os._exit(0)  # as if killed with the parent: the stores can be resumed from

    asyncio.get_running_loop().add_reader(connection.fileno(), read)
    facts = TopicFacts(settings, settings.resume_limit_s * 1000)
    factory = replace(replica_factory(settings, facts.limit_ms, Metrics(CollectorRegistry()), ()), caught_up_s=math.inf)
    changelog = changelog_of(settings, factory, facts)
    changelog.start()
    async with asyncio.TaskGroup() as restores:  # a defect in one ends the process
        while True:
            request = await asked.get()
            restores.create_task(_restore(factory, changelog, connection, request))


async def _restore(factory: ReplicaFactory, changelog: Changelog, connection: Connection, asked: Asked) -> None:
    """Applies a partition up to the known end, or as far as it gets without a stall, and closes its store."""
    definition, topic, partition, end = asked
    metrics = Metrics(CollectorRegistry())  # the counts of this partition, for the parent
    try:
        replica = await asyncio.to_thread(replace(factory, metrics=metrics).open, definition, topic, partition, end)
    except StoreFailedError as error:
        _log.error("a partition cannot be restored in a process of its own", reason=str(error), store=definition.name)
        connection.send(Restored((definition.name, partition), 0, ()))
        return
    with replica.changes.watch(None) as progress:
        changelog.follow(replica)
        while not replica.progress.serving and await progress.wait(_STALL_S):
            pass
    if not changelog.is_alive():
        raise RuntimeError("the changelog has ended")
    await asyncio.wrap_future(changelog.unfollow(replica))
    connection.send(Restored((definition.name, partition), replica.progress.next_offset, metrics.record_counts()))
