"""The stores file changes while the instance runs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from structlog.testing import capture_logs

from query_service.cluster.live_stores import LiveStores
from query_service.cluster.shard_map import MemberTracker, ShardMap
from query_service.cluster.view import ClusterEvents, View
from query_service.errors import StoresFileError, UnknownStoreError
from query_service.metrics import Metrics
from query_service.storage.stores_file import StoreDefinition
from testkit.query_service import OpenReplica, store_definition

STORE = "orders-by-key"


class Scene:
    """A view that serves one store, and the content of the file."""

    def __init__(self, view: View, metrics: Metrics) -> None:
        self.view, self.metrics = view, metrics
        self.announced: tuple[tuple[str, str], ...] = ()
        self.changes = 0
        self._content: list[Sequence[StoreDefinition] | StoresFileError] = []
        tracker = MemberTracker(view.me, 2, 30)
        tracker.update(frozenset({view.me}), 0)
        self.events = ClusterEvents(asyncio.get_running_loop(), view, tracker, self._note)
        self.live = LiveStores(view, self._read, self.events.set_stores, self._announce, metrics, 0.01)

    def _read(self) -> Sequence[StoreDefinition] | None:
        content = self._content.pop() if self._content else None
        if isinstance(content, StoresFileError):
            raise content
        return content

    def _note(self) -> None:
        self.changes += 1

    def _announce(self, topics: tuple[tuple[str, str], ...]) -> None:
        self.announced = topics

    async def write(self, content: Sequence[StoreDefinition] | StoresFileError) -> list[str]:
        """Changes the file, and returns the errors that were logged."""
        self._content.append(content)
        with capture_logs() as logs:
            await self.live.file.look()
            await self.live.file.look()
        return [str(entry["reason"]) for entry in logs if entry["log_level"] == "error"]

    @property
    def is_sound(self) -> bool:
        return self.metrics.registry.get_sample_value("query_service_stores_file_ok") == 1


@pytest.fixture
async def scene(view: View, metrics: Metrics) -> Scene:
    return Scene(view, metrics)


def definition(name: str = STORE, topic: str = "topic", **fields: object) -> StoreDefinition:
    return store_definition(name, **{"topic": topic, **fields})


async def test_a_new_store_is_served_with_its_own_number_of_replicas(scene: Scene) -> None:
    errors = await scene.write([definition(), definition("rows", "rows", replicas=1)])

    assert not errors
    assert list(scene.view.stores) == [STORE, "rows"]
    assert scene.view.shard_map.of_store == {"rows": 1}
    assert scene.changes == 1


async def test_the_topic_of_a_store_with_another_name_is_announced(scene: Scene) -> None:
    await scene.write([definition(), definition("rows", "rows.g2")])

    assert ("rows", "rows.g2") in scene.announced
    assert scene.view.shard_map.topics["rows"] == "rows.g2"


async def test_a_store_that_is_gone_is_not_served_any_more(scene: Scene) -> None:
    await scene.write([definition("rows", "rows")])

    with pytest.raises(UnknownStoreError):
        scene.view.store(STORE)


async def test_a_wrong_file_changes_nothing(scene: Scene) -> None:
    errors = await scene.write(StoresFileError("stores.yaml: stores[1].name `a` is there twice"))

    assert errors == ["all stays as it is: stores.yaml: stores[1].name `a` is there twice"]
    assert list(scene.view.stores) == [STORE]
    assert not scene.is_sound

    await scene.write([definition()])

    assert scene.is_sound


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"topic": "other"}, "topic"),
        ({"format": "plain", "retain": "1h"}, "retain and format"),
        ({"replicas": 3}, "replicas"),
    ],
)
async def test_another_definition_of_a_store_is_refused_once_and_the_new_ones_are_taken(
    scene: Scene, changed: dict[str, object], named: str
) -> None:
    errors = await scene.write([store_definition(STORE, **changed), definition("rows", "rows")])

    assert errors == [f"store `{STORE}`: another {named} needs a restart"]
    assert scene.view.stores == {STORE: definition(), "rows": definition("rows", "rows")}
    assert not scene.is_sound


@pytest.mark.parametrize(
    "changed",
    [
        {"readers": {"field": "customer_id"}},
        {"private": [{"path": "tracking_number", "owner": "customer_id"}]},
        {"keeps": "members"},
        {"description": "Orders.", "interval": "5s"},
    ],
)
async def test_what_edges_go_by_is_passed_on(scene: Scene, changed: dict[str, Any]) -> None:
    errors = await scene.write([definition(**changed)])

    assert not errors
    assert scene.view.store(STORE) == definition(**changed)


async def test_a_topic_gets_another_store_once_its_old_one_is_closed(scene: Scene, open_replica: OpenReplica) -> None:
    scene.view.replicas = {(STORE, 0): open_replica(0)}
    await scene.write([definition("rows")])

    assert not scene.view.stores

    scene.view.replicas.clear()
    await scene.live.file.look()

    assert list(scene.view.stores) == ["rows"]


async def test_a_store_comes_back_from_the_same_topic_only(scene: Scene) -> None:
    await scene.write([definition("rows", "rows")])
    errors = await scene.write([definition("rows", "rows"), definition(topic="other")])

    assert errors == [f"store `{STORE}`: it was served from `topic`: another topic needs a restart"]

    await scene.write([definition("rows", "rows"), definition()])

    assert list(scene.view.stores) == [STORE, "rows"]


async def test_nothing_is_taken_back_by_an_instance_that_leaves(scene: Scene) -> None:
    scene.view.shard_map = left = ShardMap(frozenset(), 2)
    scene.events.leave()
    await scene.write([definition(), definition("rows", "rows")])

    assert scene.view.shard_map.members == left.members
