"""A store moves to the topic of a new generation, one instance after the other, while clients read."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from statecast.partitioning import partition_of
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import MakeScene, Process, Scene
from testkit.query_service import encoded_state

pytestmark = pytest.mark.timeout(240)

KEYS = [f"item-{number:03d}" for number in range(60)]
PARTITIONS = {"g1": 4, "g2": 6}
SETTLED_S = 0.5
STORES = "stores: [{{name: rows, topic: {topic}, message: statecast.orders.v1.Order}}]"


class Generations:
    """Two topics of the same rows, as two pipelines write them; each version goes to the new topic first."""

    def __init__(self, kafka: str, old: str) -> None:
        self.old, self.new = old, f"{old}.g2"
        self._admin = AdminClient({"bootstrap.servers": kafka})
        self._producer = Producer({"bootstrap.servers": kafka, "linger.ms": 0})
        self._admin.create_topics([NewTopic(self.new, PARTITIONS["g2"], 1)])[self.new].result()
        self.topics = {self.new: (PARTITIONS["g2"], 2), self.old: (PARTITIONS["g1"], 1)}
        self.version = 0
        self._turn = Lock()

    def write(self) -> None:
        """Writes the next version of one row. A new generation counts in a higher epoch, from its own beginning."""
        key = KEYS[self.version % len(KEYS)]
        self.version += 1
        with self._turn:
            for topic, (partitions, epoch) in self.topics.items():
                record = encoded_state(self.version, str(self.version).encode(), epoch=epoch)
                self._producer.produce(topic, record, key.encode(), partition_of(key, partitions))
                self._producer.flush(10)

    def drop_old(self) -> None:
        with self._turn:
            del self.topics[self.old]
        self._admin.delete_topics([self.old])[self.old].result()


class Reader:
    """Reads every key through one instance, over and over, until `move_to` names another instance.

    A failed read ends it with an error, and so does a value that is older than one that it has read.
    """

    def __init__(self, process: Process) -> None:
        self.process = process
        self.rounds = 0
        self.sources: set[tuple[str, str, int]] = set()
        self._held: dict[str, int] = {}
        self._positions: dict[str, state_pb2.Position] = {}
        self._turn = asyncio.Lock()

    async def run(self) -> None:
        while True:
            async with self._turn:
                for key in KEYS:
                    await self._read(key)
            self.rounds += 1
            await asyncio.sleep(0)

    async def move_to(self, process: Process) -> None:
        """Reads from another instance; one of another generation must first hold all that was read so far."""
        async with self._turn:
            await asyncio.sleep(SETTLED_S)
            self.process = process
            answer = await process.stub.GetState(get(KEYS[0]), timeout=10)
            if answer.state.position.epoch != self._positions[KEYS[0]].epoch:
                self._positions.clear()
                for key in KEYS:
                    await self._read(key, max_lag_ms=int(SETTLED_S * 1000))

    async def _read(self, key: str, max_lag_ms: int | None = None) -> None:
        request = get(key)
        if key in self._positions:
            request.bounds.at_least.CopyFrom(self._positions[key])
        if max_lag_ms is not None:
            request.bounds.max_lag_ms = max_lag_ms
        answer = await self.process.stub.GetState(request, timeout=10)
        version, position = int(answer.state.payload), answer.state.position

        assert version >= self._held.get(key, 0), f"{key}: {version} after {self._held[key]}"
        self._held[key], self._positions[key] = version, position
        self.sources.add((self.process.name, answer.freshness.answered_by, position.epoch))


def get(key: str) -> query.GetStateRequest:
    return query.GetStateRequest(store="rows", key=state_pb2.StateKey(group=key))


@pytest.fixture
def generations(kafka: str, create_topic: CreateTopic) -> Generations:
    return Generations(kafka, create_topic("rows", partitions=PARTITIONS["g1"], cleanup_policy="compact"))


@pytest.fixture
async def scene(generations: Generations, make_scene: MakeScene) -> AsyncIterator[Scene]:
    scene = make_scene(generations.old, STORES.format(topic=generations.old))
    yield scene
    await scene.close()


@asynccontextmanager
async def running(work: Callable[[], Coroutine[None, None, None]]) -> AsyncIterator["asyncio.Task[None]"]:
    """Runs a coroutine in the background and cancels it at the end; an error that it raises is raised here."""
    task = asyncio.create_task(work())
    try:
        yield task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_readers_never_go_back_while_instances_go_over(
    scene: Scene, generations: Generations, tmp_path: Path
) -> None:
    async def write() -> None:
        while True:
            await asyncio.to_thread(generations.write)

    async def read_for_a_while() -> None:
        before = reader.rounds
        reader.sources.clear()
        await scene.until(lambda: reader.rounds > before + 2 or reading.done(), reader.process)
        assert not reading.done(), reading.exception()

    async def go_over(process: Process) -> Process:
        process.terminate()
        await scene.until(lambda: not process.running, process)
        again = scene.launch(process.name, replicas=2)
        await scene.until_ready(again)
        return again

    for _ in KEYS:
        generations.write()
    one, two = (scene.launch(name, replicas=2) for name in ("query-1", "query-2"))
    await scene.until_applied(one, len(KEYS), PARTITIONS["g1"])
    await scene.until_ready(two)
    reader = Reader(two)
    async with running(write), running(reader.run) as reading:
        await read_for_a_while()
        (old_epoch,) = {epoch for *_, epoch in reader.sources}

        (tmp_path / "stores.yaml").write_text(STORES.format(topic=generations.new))
        one = await go_over(one)
        await read_for_a_while()

        assert reader.sources == {("query-2", "query-2", old_epoch)}

        await reader.move_to(one)
        await read_for_a_while()
        ((*answered, new_epoch),) = reader.sources

        assert answered == ["query-1", "query-1"]
        assert new_epoch != old_epoch

        two = await go_over(two)
        await asyncio.to_thread(generations.drop_old)
        await reader.move_to(two)
        await read_for_a_while()

        assert {epoch for *_, epoch in reader.sources} == {new_epoch}
    shards = (await two.stub.ListShards(query.ListShardsRequest(store="rows"))).shards
    assert [len(shard.replicas) for shard in shards] == [2] * PARTITIONS["g2"]
