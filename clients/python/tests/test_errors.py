"""gRPC statuses become errors, and some of them make the router try another instance."""

from operator import attrgetter

import grpc
import pytest

from statecast.query.v1 import query_pb2
from statecast_client import errors
from statecast_client.errors import error_of_key
from statecast_client.router import RETRIED, error_of


def failure(code: grpc.StatusCode, *trailing: tuple[str, bytes]) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), "text")


@pytest.mark.parametrize("code", list(grpc.StatusCode))
def test_every_status_is_an_error_of_this_client(code: grpc.StatusCode) -> None:
    assert isinstance(error_of(failure(code), "a:1"), errors.StatecastError)
    assert isinstance(error_of_key(query_pb2.KeyError(code=code.value[0])), errors.StatecastError)


def test_an_absent_error_carries_the_absence_and_its_freshness() -> None:
    absence, freshness = query_pb2.Absence(deleted=True), query_pb2.Freshness(lag_ms=7)
    error = error_of(
        failure(
            grpc.StatusCode.NOT_FOUND,
            ("statecast-absence-bin", absence.SerializeToString()),
            ("statecast-freshness-bin", freshness.SerializeToString()),
        ),
        "a:1",
    )

    assert isinstance(error, errors.AbsentError)
    assert (error.absence, error.freshness) == (absence, freshness)


def test_not_found_without_an_absence_is_an_unknown_store() -> None:
    assert isinstance(error_of(failure(grpc.StatusCode.NOT_FOUND), "a:1"), errors.UnknownStoreError)


def test_an_instance_that_does_not_answer_is_named() -> None:
    assert str(error_of(failure(grpc.StatusCode.UNAVAILABLE), "a:1")) == "a:1 does not answer: text"


@pytest.mark.parametrize("code", sorted(RETRIED, key=attrgetter("name")))
def test_a_status_that_is_retried_ends_as_unavailable(code: grpc.StatusCode) -> None:
    assert isinstance(error_of(failure(code), "a:1"), errors.UnavailableError)
