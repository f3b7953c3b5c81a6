"""Fixtures of the edge's tests: a real edge with a scripted query service behind it."""

from collections.abc import AsyncIterator

import pytest
from httpx import AsyncClient

from testkit.ws_edge.edge import Clock, FakeQueryService, RunningEdge


@pytest.fixture
def clock() -> Clock:
    """A clock that tests set."""
    return Clock()


@pytest.fixture
async def service() -> AsyncIterator[FakeQueryService]:
    """A scripted query service that listens."""
    async with FakeQueryService() as running:
        yield running


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    """An edge."""
    async with RunningEdge() as running:
        yield running


@pytest.fixture
async def keeping_edge() -> AsyncIterator[RunningEdge]:
    """The same with a stand-in for Kafka, so that it has channels and revocation."""
    async with RunningEdge(kafka=True) as running:
        yield running


@pytest.fixture
async def alice(edge: RunningEdge) -> AsyncIterator[AsyncClient]:
    """Calls as the gateway makes them for customer-0001."""
    async with edge.client() as client:
        yield client


@pytest.fixture
async def operator(edge: RunningEdge) -> AsyncIterator[AsyncClient]:
    """Calls as the gateway makes them for staff."""
    async with edge.client("", "staff") as client:
        yield client
