"""Errors and statuses."""

import grpc
import pytest

from query_service import errors
from query_service.errors import (
    AbsentError,
    BoundsError,
    InvalidRequestError,
    LookupFailedError,
    MisplacedKeyError,
    NotServedError,
    OverloadedError,
    PeerOverloadedError,
    TooLargeError,
    UnknownStoreError,
    UnreachableError,
)
from query_service.reads.status import ending_of, failure_of, fill_key_error, status_of
from statecast.query.v1 import query_pb2
from statecast.state.v1.state_pb2 import Position

ABSENT = AbsentError(
    "nothing",
    query_pb2.Absence(position=Position(epoch=1, offset=2), deleted=True),
    query_pb2.Freshness(lag_ms=7, answered_by="query-1"),
)


def over_the_wire(failure: LookupFailedError) -> tuple[grpc.StatusCode, LookupFailedError]:
    """Returns the status of a call that fails, and the failure that the peer which made it has."""
    code, text, trailing = ending_of(failure)
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), text)
    return code, failure_of(error, "query-2")


def test_every_failure_has_a_status() -> None:
    failures = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, LookupFailedError) and each is not LookupFailedError
    ]

    assert {InvalidRequestError, AbsentError} <= set(failures)
    for each in failures:
        instance = ABSENT if each is AbsentError else each("text")
        assert isinstance(status_of(instance), grpc.StatusCode)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (InvalidRequestError("key.group: empty"), grpc.StatusCode.INVALID_ARGUMENT),
        (NotServedError("still reading"), grpc.StatusCode.UNAVAILABLE),
        (BoundsError("behind"), grpc.StatusCode.FAILED_PRECONDITION),
        (MisplacedKeyError("not looked up"), grpc.StatusCode.FAILED_PRECONDITION),
        (ABSENT, grpc.StatusCode.NOT_FOUND),
    ],
)
def test_a_failure_arrives_at_the_peer_as_it_was_raised(failure: LookupFailedError, code: grpc.StatusCode) -> None:
    status, arrived = over_the_wire(failure)

    assert status == code
    assert type(arrived) is type(failure)
    assert str(arrived) == str(failure)


def test_an_absence_arrives_with_its_position_and_freshness() -> None:
    _, arrived = over_the_wire(ABSENT)

    assert isinstance(arrived, AbsentError)
    assert arrived.absence == ABSENT.absence
    assert arrived.freshness == query_pb2.Freshness(lag_ms=7, answered_by="query-1", forwarded=True)


@pytest.mark.parametrize("failure", [UnknownStoreError("no such store"), TooLargeError("too large")])
def test_what_only_this_peer_cannot_answer_sends_the_caller_to_another(failure: LookupFailedError) -> None:
    _, arrived = over_the_wire(failure)

    assert isinstance(arrived, NotServedError)


@pytest.mark.parametrize(
    "code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNKNOWN]
)
def test_a_peer_that_did_not_answer_is_unreachable(code: grpc.StatusCode) -> None:
    error = grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(), "connection refused")

    assert isinstance(failure_of(error, "query-2"), UnreachableError)
    assert "query-2 does not answer" in str(failure_of(error, "query-2"))


def test_a_key_of_a_batch_fails_with_the_code_of_a_get() -> None:
    error = query_pb2.KeyError()
    fill_key_error(error, NotServedError("still reading"))

    assert (error.code, error.message) == (14, "still reading")


def test_a_peer_that_is_overloaded_says_nothing_of_its_partitions() -> None:
    _, arrived = over_the_wire(OverloadedError("ask again later"))

    assert isinstance(arrived, PeerOverloadedError)
    assert str(arrived) == "query-2: ask again later"
