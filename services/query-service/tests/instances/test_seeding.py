"""A wiped instance takes its partitions from its peer, also when either is killed in the middle, and ends up exact."""

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer

from query_service.storage.record import TOMBSTONE_HEADER
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.store_keys import HEADER_SIZE, header_of
from statecast.partitioning import partition_of
from testkit.background import in_background
from testkit.query_instances import Process, Scene
from testkit.query_service import encoded_state

pytestmark = pytest.mark.timeout(300)

PARTITIONS = 4
KEYS = [f"order-{number:04d}" for number in range(4000)]

Rows = dict[bytes, tuple[int, bytes]]


class Writer:
    """Writes rows, deletions and replays, and knows which row of each key must win."""

    def __init__(self, kafka: str, topic: str) -> None:
        """Writes to a keyed topic of four partitions."""
        self._producer = Producer({"bootstrap.servers": kafka, "queue.buffering.max.messages": 100_000})
        self._topic = topic
        self._random = random.Random(topic)
        self._newest: dict[str, tuple[int, bytes | None]] = {}
        self._records = 0

    @property
    def last_offsets(self) -> int:
        """Sum of the last offsets of all partitions."""
        return self._records - PARTITIONS

    @property
    def rows(self) -> Rows:
        """Sequence and payload of each row that is there in the end."""
        return {key.encode(): (row[0], row[1]) for key, row in self._newest.items() if row[1] is not None}

    def fill(self) -> None:
        for key in KEYS:
            self._write(key, 1, self._random.randbytes(1500))
        self._producer.flush(60)

    def go_on(self, done: Event) -> None:
        while not done.wait(0.01):
            for key in self._random.sample(KEYS, 5):
                sequence, payload = self._newest[key]
                kind = self._random.random()
                if kind < 0.3:
                    self._write(key, sequence, payload)  # a replay
                    self._write(key, max(1, sequence - 1), b"replayed")
                elif kind < 0.5:
                    self._write(key, sequence + 1, None)
                else:
                    self._write(key, sequence + 1, self._random.randbytes(50))
            self._producer.poll(0)
        self._producer.flush(60)

    def _write(self, key: str, sequence: int, payload: bytes | None) -> None:
        if sequence > self._newest.get(key, (0, None))[0]:
            self._newest[key] = sequence, payload
        record, partition = encoded_state(sequence, payload or b""), partition_of(key, PARTITIONS)
        if payload is None:
            headers: list[tuple[str, str | bytes | None]] = [(TOMBSTONE_HEADER, record)]
            self._producer.produce(self._topic, None, key.encode(), partition, headers=headers)
        else:
            self._producer.produce(self._topic, record, key.encode(), partition)
        self._records += 1


@pytest.fixture
def writer(kafka: str, scene: Scene) -> Writer:
    writer = Writer(kafka, scene.topic)
    writer.fill()
    return writer


def rows_on_disk(directory: Path) -> Rows:
    """Returns the rows of the store in a closed data directory, all partitions together."""
    rows: Rows = {}
    for partition in range(PARTITIONS):
        engine = RocksdbOpener(1 << 20, 8 << 20).open(directory / "rows" / str(partition))
        for key, value in engine.scan(b"\1", b"\xff"):
            rows[key] = header_of(value).sequence, value[HEADER_SIZE:]
        engine.close()
    return rows


def has_taken(process: Process, size: int) -> Callable[[], bool]:
    def enough() -> bool:
        try:
            return process.metric("query_service_seed_bytes_total", direction="taken") >= size
        except OSError:
            return False  # it does not listen yet

    return enough


async def launch_amid_a_seed(scene: Scene) -> tuple[Process, Process]:
    """Starts two instances, of which the second has taken a part of its partitions from the first."""
    one = scene.launch("query-1", seed_mb_per_s=1)
    await scene.until_ready(one)
    two = scene.launch("query-2", seed_mb_per_s=1)
    await scene.until(has_taken(two, 1_000_000), two)
    return one, two


async def settle(scene: Scene, writer: Writer, *processes: Process) -> None:
    """Waits until all have applied the last record of each partition, and ends them."""

    def has_everything(process: Process) -> bool:
        return process.metric("query_service_applied_offset") == writer.last_offsets

    for process in processes:
        await scene.until(partial(has_everything, process), process)
    await scene.close()


def assert_holds(directory: Path, rows: Rows) -> None:
    """Asserts that a closed data directory has exactly these rows; names the first keys that differ."""
    on_disk = rows_on_disk(directory)
    assert sorted(key for key in on_disk.keys() | rows.keys() if on_disk.get(key) != rows.get(key))[:5] == []


async def test_a_wiped_instance_comes_back_from_its_peer_while_rows_change(
    scene: Scene, writer: Writer, tmp_path: Path
) -> None:
    one, two = scene.launch("query-1"), scene.launch("query-2")
    await scene.until_ready(one, two)
    two.kill()
    two.wipe()
    with in_background(writer.go_on):
        two.start()
        await scene.until_ready(two)
    from_topic = two.metric("query_service_restore_records_total")
    seeded = two.metric("query_service_seeds_total", outcome="peer")
    taken_bytes = two.metric("query_service_seed_bytes_total", direction="taken")
    given_bytes = one.metric("query_service_seed_bytes_total", direction="given")
    await settle(scene, writer, one, two)

    assert seeded == PARTITIONS
    assert from_topic < len(KEYS) / 2
    shrunk_bytes = len(KEYS) / 2 * 50  # the longer the start takes, the more rows have become short, or deletions
    assert given_bytes >= taken_bytes > shrunk_bytes  # a piece that came too late is given again
    assert_holds(tmp_path / "query-2", writer.rows)
    assert_holds(tmp_path / "query-1", writer.rows)


async def test_when_the_giver_is_killed_in_the_middle_the_topic_is_read(
    scene: Scene, writer: Writer, tmp_path: Path
) -> None:
    one, two = await launch_amid_a_seed(scene)
    one.kill()
    await scene.until_ready(two)
    seeded = two.metric("query_service_seeds_total", outcome="peer")
    await settle(scene, writer, two)

    assert seeded < PARTITIONS
    assert_holds(tmp_path / "query-2", writer.rows)


async def test_when_the_taker_is_killed_in_the_middle_it_begins_again(
    scene: Scene, writer: Writer, tmp_path: Path
) -> None:
    one, two = await launch_amid_a_seed(scene)
    two.kill()
    assert list((tmp_path / "query-2" / ".unfinished").iterdir()) != []

    with in_background(writer.go_on):
        two.start()
        await scene.until_ready(two)
    set_aside = two.metric("query_service_set_aside_total")
    await settle(scene, writer, one, two)

    assert set_aside == 0
    assert not (tmp_path / "query-2" / ".unfinished").exists() or not list(
        (tmp_path / "query-2" / ".unfinished").iterdir()
    )
    assert_holds(tmp_path / "query-2", writer.rows)
