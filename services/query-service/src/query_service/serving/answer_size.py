"""Keeps the answer of a batch below the size that the caller can receive."""

from query_service.errors import TooLargeError
from query_service.grpc_status import fill_key_error
from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query

Result = query_pb2.KeyResult | query_pb2.RangeResult

_TOO_LARGE = TooLargeError("the answer would be too large: ask for fewer keys and ranges at a time")


def cap(answer: query.BatchGetStatesResponse, most_bytes: int) -> None:
    """Replaces results by errors, ranges before keys and from the last on, until the answer is small enough."""
    size = answer.ByteSize()
    results: list[Result] = [*reversed(answer.ranges), *reversed(answer.results)]
    for result in results:
        if size <= most_bytes:
            return
        size -= result.ByteSize()
        index = result.index
        result.Clear()
        result.index = index
        fill_key_error(result.error, _TOO_LARGE)
        size += result.ByteSize()
