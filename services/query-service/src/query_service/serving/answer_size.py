"""Keeps the answer of a batch below the size that the caller can receive."""

from query_service.errors import TooLargeError
from query_service.grpc_status import fill_key_error
from statecast.query.v1 import query_service_pb2 as query

_TOO_LARGE = TooLargeError("the answer would be too large: ask for fewer keys at a time")


def cap(answer: query.BatchGetStatesResponse, most_bytes: int) -> None:
    """Replaces results by errors, from the last on, until the answer is small enough."""
    size = answer.ByteSize()
    for result in reversed(answer.results):
        if size <= most_bytes:
            return
        size -= result.ByteSize()
        fill_key_error(result.error, _TOO_LARGE)
        size += result.ByteSize()
