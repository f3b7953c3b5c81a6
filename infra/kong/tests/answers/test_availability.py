"""Clients' view of upstreams that go away and come back."""

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from testkit.gateway_under_test import GatewayUnderTest
from testkit.waiting import wait_until

ALICE = {"apikey": "alice-demo-key"}
BOTH = {"upstream-1", "upstream-2"}


def status(gateway: GatewayUnderTest) -> int:
    return gateway.get("/v1/x", ALICE).status_code


def where_sockets_land(gateway: GatewayUnderTest, count: int = 4) -> set[str]:
    """Opens sockets at the same time; says which upstreams took them."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(gateway.socket("/v1/stream", ALICE)) for _ in range(count)]
        return {json.loads(socket.recv())["upstream"] for socket in sockets}


@pytest.fixture(autouse=True)
def _both_upstreams_serve(gateway: GatewayUnderTest) -> Iterator[None]:
    yield
    wait_until(lambda: status(gateway) == 200 and where_sockets_land(gateway) == BOTH, "both upstreams serve again")


def test_sockets_are_spread_over_the_upstreams(gateway: GatewayUnderTest) -> None:
    wait_until(lambda: where_sockets_land(gateway) == BOTH, "the sockets are spread")


def test_an_upstream_that_is_not_ready_gets_nothing_until_it_is(gateway: GatewayUnderTest) -> None:
    first = gateway.upstreams[0]
    first.ready = False
    try:
        wait_until(lambda: where_sockets_land(gateway) == {"upstream-2"}, "the first upstream gets no socket")
    finally:
        first.ready = True

    wait_until(lambda: where_sockets_land(gateway) == BOTH, "the first upstream gets sockets again")


def test_requests_go_on_when_an_upstream_ends(gateway: GatewayUnderTest) -> None:
    first = gateway.upstreams[0]
    first.stop()
    try:
        answers = [status(gateway) for _ in range(20)]
    finally:
        first.start()

    assert answers == [200] * 20


def test_an_upstream_that_has_ended_is_no_refuge_from_one_with_many_sockets(gateway: GatewayUnderTest) -> None:
    first = gateway.upstreams[0]
    with ExitStack() as stack:
        for _ in range(8):
            stack.enter_context(gateway.socket("/v1/stream", ALICE))
        first.stop()
        try:
            answers = [status(gateway) for _ in range(20)]
            landed = where_sockets_land(gateway)
        finally:
            first.start()

    assert answers == [200] * 20
    assert landed == {"upstream-2"}


def test_without_any_upstream_the_answer_is_503(gateway: GatewayUnderTest) -> None:
    for upstream in gateway.upstreams:
        upstream.stop()
    try:
        wait_until(lambda: status(gateway) == 503, "the gateway knows that nobody serves")
        answer = gateway.get("/v1/x", ALICE)
    finally:
        for upstream in gateway.upstreams:
            upstream.start()

    assert answer.json()["message"] == "failure to get a peer from the ring-balancer"
    assert answer.json()["request_id"] == answer.headers["x-kong-request-id"]
