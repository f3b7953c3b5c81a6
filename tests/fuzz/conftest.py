"""The servers that are fuzzed; each module starts its own once, for all of its inputs."""

from collections.abc import Iterator
from typing import Any

import pytest
from rigs.log import Log, logged
from rigs.loop import Loop, running_loop
from rigs.query_service import STORES, RunningQueryService
from rigs.query_service import query_service as running_service

from testkit.ws_edge.edge import RunningEdge
from ws_edge.session import protocol

UNLIMITED: dict[str, Any] = {
    "consumer_frames_per_s": 1_000_000,
    "address_frames_per_s": 1_000_000,
    "sockets_per_s": 1_000_000,
    "consumer_channels_per_hour": 1_000_000,
    "min_interval_ms": 20,
    "default_interval_ms": 20,
    "tick_ms": 5,
}
"""Settings of an edge: the limits of a client per second do not concern a single input."""


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    """The event loop of a module."""
    with running_loop() as loop:
        yield loop


@pytest.fixture(scope="module")
def log() -> Iterator[Log]:
    """The log of a module's services."""
    with logged() as log:
        yield log


@pytest.fixture(scope="module")
def query_service(loop: Loop, log: Log, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningQueryService]:
    """A query service with some rows."""
    with running_service(loop, tmp_path_factory.mktemp("data"), STORES) as service:
        service.fill()
        yield service


@pytest.fixture(scope="module", autouse=True)
def _quick() -> Iterator[None]:
    """An edge lingers after it has refused a frame, for which each of many inputs would wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "LINGER_S", 0.02)
        yield


@pytest.fixture(scope="module")
def edge(loop: Loop, query_service: RunningQueryService) -> Iterator[RunningEdge]:
    """An edge before a real query service."""
    with loop.entered(RunningEdge(query_addresses=(query_service.address,), **UNLIMITED)) as edge:
        yield edge


@pytest.fixture(scope="module")
def keeping_edge(loop: Loop, log: Log) -> Iterator[RunningEdge]:
    """An edge with channels and revocation, before a scripted query service and a stand-in for Kafka."""
    with loop.entered(RunningEdge(kafka=True, **UNLIMITED)) as edge:
        yield edge
