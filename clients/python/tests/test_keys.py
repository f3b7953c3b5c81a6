"""Keys are split by the instances that hold them."""

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.keys import key_of, split


def holders(group: str) -> tuple[str, ...]:
    return (f"holder-of-{group[0]}",)


def test_keys_of_the_same_owner_are_one_call() -> None:
    batches = split([key_of(group) for group in ("a1", "b1", "a2")], holders)

    assert [[key.group for key in batch.keys] for batch in batches] == [["a1", "a2"], ["b1"]]
    assert [batch.indices for batch in batches] == [[0, 2], [1]]


def test_many_keys_of_the_same_owner_are_several_calls() -> None:
    batches = split([key_of(f"a{number}") for number in range(5)], holders, limit=2)

    assert [batch.indices for batch in batches] == [[0, 1], [2, 3], [4]]


def test_results_get_their_index_among_all_keys() -> None:
    batch = split([key_of(group) for group in ("a1", "b1", "a2")], holders)[0]
    answer = query.BatchGetStatesResponse(results=[query_pb2.KeyResult(index=1)])

    assert [result.index for result in batch.results(answer)] == [2]


def test_the_position_of_the_caller_goes_with_its_key() -> None:
    position = state_pb2.Position(epoch=1, offset=5)
    request = split([key_of("a"), key_of(("a", "1", "m"))], holders)[0].request("rows", {1: position}, None)

    assert not request.keys[0].HasField("after")
    assert request.keys[1].after == position
    assert request.keys[1].key == state_pb2.StateKey(group="a", sort="1", member="m")
