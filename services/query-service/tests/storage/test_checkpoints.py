"""A checkpoint is a partition as of one moment: it is kept while it is read, and no longer."""

import zlib
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from query_service.errors import CheckpointGoneError, CheckpointRefusedError, NotServedError, OverloadedError
from query_service.metrics import Metrics
from query_service.storage.checkpoints import KEPT_S, Checkpoints, Pace
from query_service.storage.replica import Replica
from statecast.shard.v1 import shard_service_pb2 as shard
from testkit.query_service import ManualClock, OpenDirectory, OpenReplica, put, store_definition, tombstone


@pytest.fixture
async def replica(open_replica: OpenReplica) -> Replica:
    """A replica with two rows, one of them deleted again."""
    replica = open_replica(3, history={"versions": 2})
    records = [put("a", 1, 0, b"old"), put("a", 2, 1, b"new"), put("b", 1, 2), tombstone("b", 2, 3)]
    replica.apply(records, 4)
    return replica


def read_all(checkpoints: Checkpoints, checkpoint: shard.CreateCheckpointResponse, directory: Path) -> None:
    for file in checkpoint.files:
        data = b""
        while len(data) < file.size:
            piece = checkpoints.read(checkpoint.checkpoint_id, file.name, len(data), 1000)
            assert piece.crc32 == zlib.crc32(piece.data)
            data += piece.data
        (directory / file.name).write_bytes(data)


async def test_a_directory_of_its_files_is_resumed_from_as_it_was_at_that_moment(
    replica: Replica, checkpoints: Checkpoints, open_directory: OpenDirectory
) -> None:
    checkpoint = checkpoints.create(replica)
    replica.apply([put("a", 3, 4, b"later")], 5)
    definition, taker = store_definition("copy", history={"versions": 2}), open_directory()
    with taker.unfinished(definition, 3) as unfinished:
        read_all(checkpoints, checkpoint, unfinished)
        taker.place(unfinished, definition, 3)
    copy = taker.resume(definition, replica.topic.topic_id, 3, 5)
    assert copy is not None
    a, b = copy.get_many([b"a", b"b"])
    versions = [value[-3:] for value in copy.older_versions(b"a", 100)]

    assert checkpoint.next_offset == copy.next_offset == 4
    assert a is not None
    assert a.endswith(b"new")
    assert b is not None
    assert [key for key, _ in copy.deletions(b"a", b"z")] == [b"b"]
    assert versions == [b"old"]
    copy.close()


async def test_a_directory_that_is_not_placed_leaves_nothing(open_directory: OpenDirectory, tmp_path: Path) -> None:
    definition, taker = store_definition(), open_directory()
    with taker.unfinished(definition, 3) as unfinished:
        (unfinished / "CURRENT").write_bytes(b"half")

    assert taker.resume(definition, "id", 3, 0) is None
    assert list((tmp_path / "data").glob("**/CURRENT")) == []


async def test_only_so_many_are_kept_and_one_that_is_deleted_makes_place(
    replica: Replica, checkpoints: Checkpoints
) -> None:
    first = checkpoints.create(replica)
    checkpoints.create(replica)
    with pytest.raises(OverloadedError):
        checkpoints.create(replica)
    checkpoints.delete(first.checkpoint_id)

    assert checkpoints.create(replica).checkpoint_id != first.checkpoint_id
    with pytest.raises(CheckpointGoneError):
        checkpoints.read(first.checkpoint_id, "CURRENT", 0, 10)


async def test_one_that_nobody_reads_goes_and_one_that_is_read_stays(
    replica: Replica, checkpoints: Checkpoints, clock: ManualClock, tmp_path: Path
) -> None:
    read, unread = checkpoints.create(replica), checkpoints.create(replica)
    clock.now += KEPT_S - 1
    checkpoints.read(read.checkpoint_id, "CURRENT", 0, 10)
    clock.now += 2
    checkpoints.expire()

    assert checkpoints.read(read.checkpoint_id, "CURRENT", 0, 10).data
    assert [path.name for path in (tmp_path / "data" / ".checkpoints").iterdir()] == [read.checkpoint_id]
    with pytest.raises(CheckpointGoneError):
        checkpoints.read(unread.checkpoint_id, "CURRENT", 0, 10)


async def test_files_outside_of_the_checkpoint_are_not_read(replica: Replica, checkpoints: Checkpoints) -> None:
    checkpoint = checkpoints.create(replica)

    for name in ("../lock", "/etc/hostname", "nothing", ""):
        with pytest.raises(CheckpointGoneError):
            checkpoints.read(checkpoint.checkpoint_id, name, 0, 10)


async def test_what_an_earlier_process_kept_is_deleted(
    replica: Replica, checkpoints: Checkpoints, tmp_path: Path, clock: ManualClock
) -> None:
    checkpoints.create(replica)
    Checkpoints(tmp_path / "data", 2, Metrics(CollectorRegistry()), clock).delete_all()

    assert not (tmp_path / "data" / ".checkpoints").exists()


async def test_a_store_in_memory_gives_none(open_replica: OpenReplica, checkpoints: Checkpoints) -> None:
    with pytest.raises(CheckpointRefusedError, match="memory"):
        checkpoints.create(open_replica(1, engine="memory"))


async def test_a_store_that_has_moved_away_gives_none_and_takes_no_place(
    replica: Replica, checkpoints: Checkpoints, open_replica: OpenReplica
) -> None:
    replica.store.close()
    for _ in range(3):
        with pytest.raises(NotServedError):
            checkpoints.create(replica)

    assert checkpoints.create(open_replica(1)).files


def test_the_pace_spreads_bytes_over_time() -> None:
    clock = ManualClock()
    pace = Pace(1000.0, clock)
    delays = [pace.delay_s(500) for _ in range(3)]
    clock.now += 10.0

    assert delays == [0.0, 0.5, 1.0]
    assert pace.delay_s(500) == 0.0
