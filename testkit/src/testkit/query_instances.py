"""Real instances of the query service, as processes, on a topic of their own."""

from collections.abc import Callable, Iterable
from pathlib import Path
from shutil import rmtree
from typing import Any
from uuid import uuid4

import grpc
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # not in its __all__

from query_service.storage.record import TOMBSTONE_HEADER, Headers
from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.state.v1 import state_pb2
from testkit.ports import free_ports
from testkit.query_service import encoded_state
from testkit.service_process import ServiceProcess
from testkit.waiting import wait_until, wait_until_async


class Process(ServiceProcess):
    """One running instance, with a stub of its public service."""

    def __init__(self, name: str, settings: dict[str, object], directory: Path) -> None:
        log_file = directory / f"{name}-{uuid4().hex[:6]}.log"
        super().__init__("query_service", settings, log_file, int(str(settings["metrics_port"])))
        self.name = name
        self.address = f"127.0.0.1:{settings['port']}"
        self.shard_address = f"127.0.0.1:{settings['shard_port']}"
        self.channel = grpc.aio.insecure_channel(self.address)
        self.stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(self.channel)

    async def read(self, group: str, store: str = "rows", **bounds: Any) -> query.GetStateResponse:
        """Looks up a group by this instance."""
        request = query.GetStateRequest(store=store, key=state_pb2.StateKey(group=group))
        if bounds:
            request.bounds.CopyFrom(query_pb2.Bounds(**bounds))
        return await self.stub.GetState(request, timeout=None if bounds else 10)  # bounds are waited for until then

    async def served(self, group: str, store: str = "rows", **bounds: Any) -> bytes | grpc.StatusCode:
        """Returns the payload of a group at this instance, or the status of its refusal."""
        try:
            return (await self.read(group, store, **bounds)).state.payload
        except grpc.aio.AioRpcError as error:
            return error.code()

    async def answerers(self, groups: Iterable[str]) -> set[str]:
        """Returns the instances that answer for these groups."""
        return {(await self.read(group)).freshness.answered_by for group in groups}

    def is_ready(self) -> bool:
        return self.unready_reason() is None

    def wipe(self) -> None:
        rmtree(str(self.settings["data_directory"]))


class Scene:
    """A keyed topic of four partitions and the instances that serve it as the store `rows`, or as a file says."""

    def __init__(self, kafka: str, topic: str, directory: Path, stores: str | None = None) -> None:
        self._kafka = kafka
        self.topic = topic
        self._directory = directory
        self._group = uuid4().hex
        self._processes: list[Process] = []
        self._producer = Producer({"bootstrap.servers": kafka})
        (directory / "stores.yaml").write_text(
            stores or f"stores: [{{name: rows, topic: {topic}, message: statecast.orders.v1.Order}}]"
        )

    def instance(self, name: str, **settings: object) -> Process:
        """Returns an instance that has not been started."""
        port, shard_port, metrics_port = free_ports(3)
        values: dict[str, object] = {
            "kafka_bootstrap": self._kafka,
            "group_id": self._group,
            "instance": name,
            "port": port,
            "shard_port": shard_port,
            "metrics_port": metrics_port,
            "data_directory": self._directory / name,
            "stores": self._directory / "stores.yaml",
            "membership_interval_ms": 50,
            "drain_s": 30,
            **settings,
        }
        process = Process(name, values, self._directory)
        self._processes.append(process)
        return process

    def launch(self, name: str, **settings: object) -> Process:
        process = self.instance(name, **settings)
        process.start()
        return process

    async def serving(self, count: int, rows: dict[str, bytes], **settings: object) -> list[Process]:
        """Writes rows, and returns so many instances that have applied them: `query-1` and so on."""
        instances = [self.launch(f"query-{number}", **settings) for number in range(1, count + 1)]
        self.write({**rows})
        await self.until_ready(*instances)
        for each in instances:
            await self.until_applied(each, len(rows))
        return instances

    def write(self, rows: dict[str, bytes | None], sequence: int = 1) -> None:
        """Appends one record per row, a tombstone for None."""
        for key, payload in rows.items():
            partition = partition_of(key.split("\0")[0], 4)
            record = encoded_state(sequence, payload or b"")
            if payload is None:
                headers: Headers = [(TOMBSTONE_HEADER, record)]
                self._producer.produce(self.topic, None, key.encode(), partition, headers=headers)
            else:
                self._producer.produce(self.topic, record, key.encode(), partition)
            self._producer.flush(10)

    def write_raw(self, key: bytes, value: bytes) -> None:
        self._producer.produce(self.topic, value, key, 0)
        self._producer.flush(10)

    def make_topic_anew(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._kafka})
        admin.delete_topics([self.topic])[self.topic].result()
        wait_until(lambda: self.topic not in admin.list_topics(timeout=5).topics, "the topic is not gone")
        admin.create_topics([NewTopic(self.topic, num_partitions=4, replication_factor=1)])[self.topic].result()
        self._producer = Producer({"bootstrap.servers": self._kafka})

    def move_to(self, kafka: str) -> None:
        """Makes the same topic on another broker, and writes there from now on."""
        admin = AdminClient({"bootstrap.servers": kafka})
        admin.create_topics([NewTopic(self.topic, num_partitions=4, replication_factor=1)])[self.topic].result()
        self._producer = Producer({"bootstrap.servers": kafka, "log_level": 0, "reconnect.backoff.max.ms": 500})

    async def until(self, condition: Callable[[], object], process: Process) -> None:
        """Waits for a condition, which may be a coroutine function; fails with the log of the instance."""
        await wait_until_async(condition, lambda: process.log)

    async def until_ready(self, *processes: Process) -> None:
        for process in processes:
            await self.until(process.is_ready, process)

    async def until_applied(self, process: Process, records: int, partitions: int = 4) -> None:
        """Waits until the instance is ready and has applied this many records in all its partitions and its peers'."""
        await self.until_ready(process)

        async def applied() -> bool:
            answer = await process.stub.ListShards(query.ListShardsRequest())
            owners = [shard.replicas[0] for shard in answer.shards]
            read = sum(owner.current_through.offset + 1 for owner in owners)
            return len(owners) == partitions and read >= records and all(owner.serving for owner in owners)

        await self.until(applied, process)

    async def until_newer(self, process: Process, group: str, than: bytes) -> query.GetStateResponse:
        """Waits until the instance answers with a payload other than `than`."""
        answers: list[query.GetStateResponse] = []

        async def newer() -> bool:
            try:
                answers.append(await process.read(group))
            except grpc.aio.AioRpcError:
                return False
            return answers[-1].state.payload != than

        await self.until(newer, process)
        return answers[-1]

    async def close(self) -> None:
        for process in self._processes:
            await process.channel.close()
            process.close()


MakeScene = Callable[[str, str], Scene]
"""Makes a scene of a topic and the text of a stores file; the test closes it."""
