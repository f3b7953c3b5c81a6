"""A lease ends when its time is over, and not before."""

import asyncio

from ws_edge.access.lease import Lease
from ws_edge.testing.edge import Clock


async def test_it_ends_once_when_the_time_has_come() -> None:
    clock, ended = Clock(), asyncio.Event()
    lease = Lease(clock, ended.set)
    lease.renew(clock.now + 0.01)
    await asyncio.sleep(0.05)
    early = ended.is_set()
    clock.now += 0.01
    async with asyncio.timeout(30):
        await ended.wait()

    assert not early


async def test_a_time_that_has_passed_ends_it_at_once() -> None:
    clock, ended = Clock(), asyncio.Event()
    Lease(clock, ended.set).renew(0.0)
    async with asyncio.timeout(30):
        await ended.wait()


async def test_what_never_expires_and_what_was_cancelled_does_not_end() -> None:
    clock, ended = Clock(), asyncio.Event()
    never, renewed, cancelled = (Lease(clock, ended.set) for _ in range(3))
    never.renew(None)
    renewed.renew(0.0)
    renewed.renew(1e12)
    cancelled.renew(0.0)
    cancelled.cancel()
    renewed_later = asyncio.Event()
    Lease(clock, renewed_later.set).renew(0.0)
    async with asyncio.timeout(30):
        await renewed_later.wait()

    assert not ended.is_set()
    renewed.cancel()
