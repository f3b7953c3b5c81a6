"""Errors and statuses."""

import grpc
import pytest
from prometheus_client import CollectorRegistry

from query_service import errors
from query_service.errors import (
    AbsentError,
    BoundsError,
    InvalidRequestError,
    LookupFailedError,
    NotServedError,
    TooLargeError,
    UnknownStoreError,
    UnreachableError,
)
from query_service.metrics import Metrics
from query_service.serving.call_limits import served
from query_service.serving.grpc_status import failure_of, fill_key_error, status_of
from query_service.storage.progress import Absence, Freshness
from statecast.position import Position
from statecast.query.v1 import query_pb2
from testkit.query_service import call_limits

ABSENT = AbsentError("nothing", Absence(Position(1, 2), deleted=True), Freshness(0, 0, 7, 1, 2, "query-1"))


class Context:
    """The context of a call; `abort` raises the error that the peer would see."""

    def add_done_callback(self, callback: object) -> None:
        """Never calls it: the call does not end."""

    async def abort(
        self, code: grpc.StatusCode, details: str, trailing_metadata: tuple[tuple[str, str | bytes], ...]
    ) -> None:
        metadata = grpc.aio.Metadata(*trailing_metadata)
        raise grpc.aio.AioRpcError(code, grpc.aio.Metadata(), metadata, details)


class Servicer:
    """A servicer that fails."""

    def __init__(self, failure: LookupFailedError) -> None:
        self.limits = call_limits(Metrics(CollectorRegistry()), lambda: 0.0)
        self._failure = failure

    @served
    async def method(self, request: query_pb2.State, context: object) -> query_pb2.State:
        raise self._failure


async def over_the_wire(failure: LookupFailedError) -> tuple[grpc.StatusCode, LookupFailedError]:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await Servicer(failure).method(query_pb2.State(), Context())  # type: ignore[arg-type]
    return raised.value.code(), failure_of(raised.value, "query-2")


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
        (ABSENT, grpc.StatusCode.NOT_FOUND),
    ],
)
async def test_a_failure_arrives_at_the_peer_as_it_was_raised(
    failure: LookupFailedError, code: grpc.StatusCode
) -> None:
    status, arrived = await over_the_wire(failure)

    assert status == code
    assert type(arrived) is type(failure)
    assert str(arrived) == str(failure)


async def test_an_absence_arrives_with_its_position_and_freshness() -> None:
    _, arrived = await over_the_wire(ABSENT)

    assert isinstance(arrived, AbsentError)
    assert arrived.absence == ABSENT.absence
    assert arrived.freshness == ABSENT.freshness._replace(forwarded=True)


@pytest.mark.parametrize("failure", [UnknownStoreError("no such store"), TooLargeError("too large")])
async def test_what_only_this_peer_cannot_answer_sends_the_caller_to_another(failure: LookupFailedError) -> None:
    _, arrived = await over_the_wire(failure)

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
