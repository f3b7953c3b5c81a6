"""Calls wait for records that other threads apply, and the latest changes are known by group."""

import asyncio
from collections.abc import Sequence

import pytest

from query_service.storage.changes import Changes
from query_service.storage.store_keys import HEADER


@pytest.fixture
async def changes() -> Changes:
    return Changes(asyncio.get_running_loop(), lambda: 10, -1)


@pytest.mark.parametrize(
    ("watched", "changed", "wakes"),
    [({b"a"}, [b"b", b"a"], True), ({b"a"}, [b"b"], False), (None, (), True)],
    ids=["its-own-key", "another-key", "any-progress"],
)
async def test_a_watcher_wakes_for_its_own_key_or_for_any_progress(
    changes: Changes, watched: set[bytes] | None, changed: Sequence[bytes], *, wakes: bool
) -> None:
    with changes.watch(watched) as watcher:
        await asyncio.to_thread(changes.announce, changed)

        assert await watcher.wait(5 if wakes else 0.05) == wakes


async def test_a_change_before_the_wait_is_not_lost_and_counts_once(changes: Changes) -> None:
    with changes.watch({b"a"}) as watcher:
        changes.announce([b"a"])
        await asyncio.sleep(0)

        assert await watcher.wait(0)
        assert not await watcher.wait(0.01)


async def test_a_watcher_wakes_for_any_key_of_its_groups(changes: Changes) -> None:
    with changes.watch(frozenset(), {b"a"}) as watcher:
        changes.announce([b"ab\0s\0m"])
        assert not await watcher.wait(0.05)
        changes.announce([b"a\0s\0m"])

        assert await watcher.wait(5)


def rows(**offsets: int) -> dict[bytes, bytes]:
    """Stored values by key, written `group_member`."""
    return {key.replace("_", "\0s\0").encode(): HEADER.pack(1, at, at, 0, 0, 0) for key, at in offsets.items()}


def names(keys: list[bytes] | None) -> list[str] | None:
    return None if keys is None else [key.decode().replace("\0s\0", "_") for key in keys]


async def test_the_rows_of_a_group_come_in_the_order_of_their_last_change(changes: Changes) -> None:
    changes.note(rows(a_1=0, b_1=1, a_2=2))
    changes.note(rows(a_1=4, a_3=3))

    assert names(changes.changed_after(b"a", -1)) == ["a_2", "a_3", "a_1"]
    assert names(changes.changed_after(b"a", 3)) == ["a_1"]
    assert names(changes.changed_after(b"a", 4)) == []
    assert names(changes.changed_after(b"b", 0)) == ["b_1"]
    assert names(changes.changed_after(b"never", -1)) == []


async def test_changes_that_were_not_noted_are_unknown() -> None:
    recent = Changes(asyncio.get_running_loop(), lambda: 10, 5)

    assert recent.changed_after(b"a", 4) is None
    assert recent.changed_after(b"a", 5) == []


async def test_the_oldest_changes_are_dropped_beyond_the_bound() -> None:
    recent = Changes(asyncio.get_running_loop(), lambda: 2, -1)
    recent.note(rows(a_1=0, a_2=1, b_1=2))

    assert recent.changed_after(b"a", -1) is None
    assert names(recent.changed_after(b"a", 0)) == ["a_2"]
    recent.note(rows(b_1=3, c_1=4))
    assert recent.changed_after(b"a", 0) is None
    assert names(recent.changed_after(b"b", 1)) == ["b_1"]


async def test_a_bound_of_none_knows_nothing_but_that_nothing_is_newer() -> None:
    recent = Changes(asyncio.get_running_loop(), lambda: 0, -1)
    recent.note(rows(a_1=7))

    assert recent.changed_after(b"a", 6) is None
    assert recent.changed_after(b"a", 7) == []


async def test_a_store_that_starts_over_forgets_everything(changes: Changes) -> None:
    changes.note(rows(a_1=7))
    changes.forget(9)

    assert changes.changed_after(b"a", 8) is None
    assert changes.changed_after(b"a", 9) == []


async def test_it_forgets_the_oldest_rows_when_it_may_remember_fewer() -> None:
    limits = [2, 4]
    recent = Changes(asyncio.get_running_loop(), lambda: limits[-1], -1)
    recent.note(rows(a_1=0, a_2=1, a_3=2, a_4=3))
    assert names(recent.changed_after(b"a", 1)) == ["a_3", "a_4"]
    limits.pop()
    recent.note(rows(a_5=4))

    assert names(recent.changed_after(b"a", 2)) == ["a_4", "a_5"]
    assert recent.changed_after(b"a", 1) is None


async def test_all_watchers_wake_when_nothing_comes_here_any_more(changes: Changes) -> None:
    with changes.watch({b"a"}) as key, changes.watch(frozenset(), {b"a"}) as group, changes.watch(None) as progress:
        changes.announce(None)

        assert [await watcher.wait(5) for watcher in (key, group, progress)] == [True] * 3
