"""A batch with an answer larger than a stub takes by default, at a real instance."""

import grpc
import pytest
from confluent_kafka import Producer

from statecast.partitioning import partition_of
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.state.v1 import state_pb2
from testkit.query_instances import Scene
from testkit.query_service import encoded_state

pytestmark = pytest.mark.timeout(180)

SIZES = {f"many-{number}": 1000 for number in range(5000)} | {f"large-{number}": 6000 for number in range(800)}
"""The size of each row: together they are beyond 4 MiB, many of them and few of them."""


def batch(groups: list[str], **fields: int) -> query.BatchGetStatesRequest:
    keys = [query_pb2.KeyQuery(key=state_pb2.StateKey(group=group)) for group in groups]
    return query.BatchGetStatesRequest(store="rows", keys=keys, **fields)  # type: ignore[arg-type]


async def test_a_bare_stub_gets_what_fits_and_the_names_of_the_rest(kafka: str, scene: Scene) -> None:
    producer = Producer({"bootstrap.servers": kafka})
    for group, size in SIZES.items():
        producer.produce(scene.topic, encoded_state(1, bytes(size)), group.encode(), partition_of(group, 4))
    producer.flush(30)
    one = scene.launch("query-1")
    await scene.until_applied(one, len(SIZES))
    for word in ("many", "large"):
        groups = [group for group in SIZES if group.startswith(word)]
        read, calls = dict[str, int](), 0
        while left := [group for group in groups if group not in read]:
            answer = await one.stub.BatchGetStates(batch(left), timeout=20)
            errors = {result.error.code for result in answer.results if result.HasField("error")}
            read |= {left[each.index]: len(each.state.payload) for each in answer.results if each.HasField("state")}
            calls += 1

            assert len(answer.results) == len(left)
            assert errors <= {grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]}

        assert read == {group: SIZES[group] for group in groups}
        assert calls == 2
        async with grpc.aio.insecure_channel(
            one.address, options=[("grpc.max_receive_message_length", 16 << 20)]
        ) as channel:
            whole = await query_grpc.QueryServiceStub(channel).BatchGetStates(
                batch(groups, max_response_bytes=16 << 20), timeout=20
            )

        assert [len(result.state.payload) for result in whole.results] == [SIZES[group] for group in groups]
