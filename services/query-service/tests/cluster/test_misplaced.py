"""Keys in other partitions than theirs: the lookups that are refused, and the advice that is given."""

from typing import cast

import pytest
from structlog.testing import capture_logs

from query_service.cluster.misplaced import MisplacedAt, misplaced_of
from query_service.cluster.misplaced_watch import MisplacedWatch
from query_service.cluster.view import View
from query_service.errors import MisplacedKeyError
from query_service.metrics import Metrics
from statecast.partitioning import PARTITIONERS, GroupHash, partition_of
from testkit.query_service import put, store_definition, tombstone

STORE = "orders-by-key"
KEYS = [f"c-{number}" for number in range(400)]
PLAIN = store_definition("s", format="plain", message="json")
KEYED = store_definition("s")


def places(partitioner: str, partitions: int) -> dict[int, list[str]]:
    """Where a partitioner puts keys that do not belong there by murmur2 over twelve partitions."""
    found: dict[int, list[str]] = {}
    for key in KEYS:
        at = partition_of(key, partitions, PARTITIONERS[partitioner])
        if at != partition_of(key, 12):
            found.setdefault(at, []).append(key)
    return found


@pytest.mark.parametrize("partitioner", ["crc32", "fnv1a", "fnv1a_reference"])
def test_the_partitioner_that_fits_is_named(partitioner: str) -> None:
    reason = misplaced_of(PLAIN, 12, places(partitioner, 12)).reason

    assert f"set `partitioner: {partitioner}` in its store, if all its producers have that" in reason


@pytest.mark.parametrize("fewer", [1, 2, 6])
def test_a_topic_that_was_given_more_partitions_is_named(fewer: int) -> None:
    everywhere = places("murmur2", fewer)

    assert f"where {fewer} partitions put them" in misplaced_of(PLAIN, 12, everywhere).reason
    assert f"where {fewer} partitions put them" in misplaced_of(PLAIN, 12, {0: everywhere[0]}).reason


def test_the_way_out_of_more_partitions_is_that_of_the_stores_kind() -> None:
    assert misplaced_of(PLAIN, 12, places("murmur2", 6)).reason.endswith("make a new topic instead")
    assert misplaced_of(KEYED, 12, places("murmur2", 6)).reason.endswith("begin a new generation of its pipeline")


def test_a_few_keys_are_named_and_others_are_looked_up() -> None:
    misplaced = misplaced_of(PLAIN, 12, {3: ["c-1"], 4: ["c-2"]})

    assert "2 of its keys are not in the partitions that `murmur2` gives to them ('c-1' in 3" in misplaced.reason
    assert [misplaced.concerns(group) for group in ("c-1", "c-2", "c-3")] == [True, True, False]


def test_with_a_hundred_in_one_partition_all_keys_are_in_doubt() -> None:
    misplaced = misplaced_of(PLAIN, 12, {3: [f"x-{number}" for number in range(100)]})

    assert misplaced.concerns("c-3")
    assert "no partitioner that is known" in misplaced.reason


def test_of_very_many_misplaced_keys_a_few_tell_where_they_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed, murmur2 = set[str](), PARTITIONERS["murmur2"]

    def noted(group: str) -> int:
        hashed.add(group)
        return murmur2(group)

    monkeypatch.setitem(cast(dict[str, GroupHash], PARTITIONERS), "murmur2", noted)
    standing = {at: [f"x-{at}-{number}" for number in range(100)] for at in range(16)}
    misplaced = misplaced_of(PLAIN, 16, standing)

    assert misplaced.reason.startswith("its keys are not in the partitions")
    assert len(misplaced.groups) == 1600
    assert len(hashed) <= 200


async def test_what_this_instance_and_its_peers_know_is_refused_and_told_once(
    serving_view: View, metrics: Metrics
) -> None:
    epoch, replica = serving_view.topic(STORE).epoch, serving_view.replicas[STORE, 0]
    mine, theirs = (next(key for key in KEYS if partition_of(key, 4) == at) for at in (1, 2))
    said: list[MisplacedAt] = [{(STORE, 3, epoch): [theirs], (STORE, 3, epoch + 1): KEYS, ("gone", 0, 1): KEYS}]
    watch = MisplacedWatch(serving_view, lambda: said, metrics)
    replica.apply([put(mine, 1, 0)], 1)
    with capture_logs() as logs:
        watch.update()
        watch.update()

    assert [log["store"] for log in logs] == [STORE]
    for key in (mine, theirs):
        with pytest.raises(MisplacedKeyError, match=f"`{key}` of `{STORE}` is not looked up: 2 of its keys"):
            serving_view.shard_of(STORE, key)
    serving_view.shard_of(STORE, "c-other")
    assert metrics.registry.get_sample_value("query_service_misplaced_keys", {"store": STORE}) == 2

    said.clear()
    replica.apply([tombstone(mine, 2, 1)], 2)
    watch.update()
    serving_view.shard_of(STORE, mine)
    assert metrics.registry.get_sample_value("query_service_misplaced_keys", {"store": STORE}) == 0


async def test_a_peer_with_another_partitioner_keeps_no_key_from_being_looked_up(view: View, metrics: Metrics) -> None:
    groups = [key for key in KEYS if partition_of(key, 4) == 3]
    said: MisplacedAt = {(STORE, 3, view.topic(STORE).epoch): groups}
    MisplacedWatch(view, lambda: [said], metrics).update()

    assert view.misplaced == {}
