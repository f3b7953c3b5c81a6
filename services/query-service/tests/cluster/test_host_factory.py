"""Hosts are opened on what is on disk."""

import asyncio
import time
from collections.abc import Callable

import pytest

from query_service.cluster.host_factory import HostFactory
from query_service.cluster.view import Topic
from query_service.metrics import Metrics
from query_service.storage.changes import Changes
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_directory import StoreDirectory
from query_service.testing import put, store_definition

TOPIC = Topic("topic", "id", 77, 4)
Open = Callable[[int, int], PartitionHost]


@pytest.fixture
async def factory(open_directory: Callable[..., StoreDirectory], metrics: Metrics) -> HostFactory:
    loop = asyncio.get_running_loop()
    return HostFactory(
        {"s": store_definition()}, open_directory(), lambda: Changes(loop), metrics, 2.0, lambda: 1_700_000_000_000, 100
    )


async def test_a_new_store_knows_of_no_deletion_before_the_end(factory: HostFactory) -> None:
    host = factory.open("s", TOPIC, 1, (50, 0.0))

    assert host.store.purged_through == 49
    assert host.place.epoch == 77
    assert not host.progress.serving
    host.store.close()


async def test_a_store_on_disk_is_gone_on_from(factory: HostFactory) -> None:
    host = factory.open("s", TOPIC, 1, (50, 0.0))
    host.apply([put("a", 1, 60)], 61)
    host.store.close()
    again = factory.open("s", TOPIC, 1, (100, 0.0))

    assert again.progress.next_offset == 61
    assert again.store.purged_through == 49
    assert again.progress.lag_records == 39
    again.store.close()


@pytest.mark.parametrize("reason", [None, "the store is corrupt"])
async def test_a_host_starts_over_from_an_empty_store(factory: HostFactory, reason: str | None) -> None:
    host = factory.open("s", TOPIC, 1, (0, 0.0))
    host.apply([put("a", 1, 60)], 61)
    host.saw_end(70, 0.0)
    factory.reopen(host, reason)

    assert host.read([b"a"]) == [None]
    assert (host.progress.next_offset, host.progress.serving) == (0, False)
    assert host.store.purged_through == 69
    host.store.close()


@pytest.mark.parametrize(("end", "restoring"), [(10_000, False), (10_001, True)])
async def test_who_is_far_behind_restores(factory: HostFactory, end: int, restoring: bool) -> None:
    host = factory.open("s", TOPIC, 1, (end, time.monotonic()))
    assert host.store.restoring == restoring
    host.apply([put("a", 1, end - 1)], end)

    assert host.progress.serving
    assert not host.store.restoring
    host.store.close()
