"""Answers stay below the size that the caller can receive."""

from query_service.serving.answer_size import cap
from statecast.query.v1 import query_service_pb2 as query

RESOURCE_EXHAUSTED = 8


def answer() -> query.BatchGetStatesResponse:
    made = query.BatchGetStatesResponse()
    for index in range(10):
        made.results.add(index=index).state.payload = b"x" * 1000
    return made


def test_a_small_answer_stays_as_it_is() -> None:
    capped = answer()
    cap(capped, 1_000_000)

    assert capped == answer()


def test_what_does_not_fit_fails_key_by_key() -> None:
    capped = answer()
    cap(capped, 5_000)
    kept = [result for result in capped.results if result.HasField("state")]
    failed = [result for result in capped.results if result.HasField("error")]

    assert capped.ByteSize() <= 5_100
    assert 3 <= len(kept) < 10
    assert [result.index for result in capped.results] == list(range(10))
    assert {result.error.code for result in failed} == {RESOURCE_EXHAUSTED}


def test_ranges_fail_before_keys_do() -> None:
    capped = answer()
    for index in range(5):
        capped.ranges.add(index=index, whole=True).states.add(payload=b"x" * 1000)
    cap(capped, 13_000)

    assert all(result.HasField("state") for result in capped.results)
    assert [result.error.code for result in capped.ranges][-1] == RESOURCE_EXHAUSTED
    assert [result.index for result in capped.ranges] == list(range(5))
    assert not capped.ranges[-1].whole
