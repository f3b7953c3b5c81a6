"""Calls wait for what other threads apply."""

import asyncio

from query_service.storage.changes import Changes, Watcher


async def test_a_watcher_wakes_for_its_own_key() -> None:
    changes = Changes(asyncio.get_running_loop())
    with changes.watched_by(Watcher({b"a"})) as watcher:
        await asyncio.to_thread(changes.announce, [b"b", b"a"])

        assert await watcher.wait(5)


async def test_a_watcher_sleeps_through_other_keys() -> None:
    changes = Changes(asyncio.get_running_loop())
    with changes.watched_by(Watcher({b"a"})) as watcher:
        changes.announce([b"b"])

        assert not await watcher.wait(0.05)


async def test_a_watcher_without_keys_wakes_for_any_progress() -> None:
    changes = Changes(asyncio.get_running_loop())
    with changes.watched_by(Watcher(None)) as watcher:
        changes.announce(())

        assert await watcher.wait(5)


async def test_a_change_before_the_wait_is_not_lost_and_counts_once() -> None:
    changes = Changes(asyncio.get_running_loop())
    with changes.watched_by(Watcher({b"a"})) as watcher:
        changes.announce([b"a"])
        await asyncio.sleep(0)

        assert await watcher.wait(0)
        assert not await watcher.wait(0.01)


async def test_one_watcher_watches_several_partitions() -> None:
    one, other = Changes(asyncio.get_running_loop()), Changes(asyncio.get_running_loop())
    watcher = Watcher({b"a"})
    with one.watched_by(watcher), other.watched_by(watcher):
        other.announce([b"a"])

        assert await watcher.wait(5)


async def test_a_watcher_wakes_for_any_key_of_its_groups() -> None:
    changes = Changes(asyncio.get_running_loop())
    with changes.watched_by(Watcher(frozenset(), {b"a"})) as watcher:
        changes.announce([b"ab\0s\0m"])
        assert not await watcher.wait(0.05)
        changes.announce([b"a\0s\0m"])

        assert await watcher.wait(5)
