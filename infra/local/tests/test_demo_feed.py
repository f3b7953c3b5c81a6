"""Feeding the board."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from local_stack.demo_board import Board
from local_stack.demo_feed import DemoFeed, follow_shards
from local_stack.gateway_client import GatewayClient
from local_stack.stack_file import Basic, Credentials
from local_stack.testing import FakeGateway, wait_until

ALICE = Credentials(customer_id="customer-0001", basic=Basic(username="alice", password="secret"))
NOW = 1_800_000_000.0


def frame(status: str, offset: int) -> dict[str, Any]:
    return {
        "type": "order_status_update",
        "data": {"order_id": "order-1", "status": status, "estimated_delivery": "", "tracking_number": ""},
        "position": {"epoch": "1", "offset": str(offset)},
        "commit_time": "2027-01-15T08:00:00Z",
    }


@pytest.fixture
def gateway(tmp_path: Path) -> FakeGateway:
    made = FakeGateway(tmp_path)
    member = {"key": {"group": "customer-0001", "sort": "1", "member": "order-1"}}
    made.pages["/v1/stores/orders-by-customer/groups/customer-0001"] = {"states": [member]}
    return made


@asynccontextmanager
async def fed(gateway: FakeGateway) -> AsyncIterator[Board]:
    board = Board()
    async with gateway.running() as stack, GatewayClient(stack, ALICE) as client:
        feed = asyncio.create_task(DemoFeed(client, "alice", ["customer-0001"], board, lambda: NOW).run())
        try:
            yield board
        finally:
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)


async def test_orders_of_the_range_are_watched_and_shown(gateway: FakeGateway) -> None:
    gateway.frames["order-1"] = [frame("Placed", 1), frame("Paid", 2)]

    async with fed(gateway) as board:
        await asyncio.to_thread(wait_until, lambda: board.updates, "an update comes")

    line = board.lines["order-1"]
    assert (line.update.status, line.customer_id, line.seen_by) == ("Paid", "customer-0001", "alice")
    assert line.changes == 1


async def test_a_lost_socket_goes_on_from_its_position(gateway: FakeGateway) -> None:
    gateway.frames["order-1"] = [frame("Placed", 7)]

    async with fed(gateway) as board:
        await asyncio.to_thread(wait_until, lambda: board.lines, "a snapshot comes")
        for socket in list(gateway.sockets):
            await socket.close()
        await asyncio.to_thread(wait_until, lambda: len(gateway.requests) == 2, "it asks again")

    assert "position" not in gateway.requests[0]
    assert gateway.requests[1]["position"] == {"epoch": "1", "offset": "7"}


async def test_an_error_frame_is_shown_as_a_problem(gateway: FakeGateway) -> None:
    gateway.frames["order-1"] = [{"type": "error", "error": {"code": "forbidden", "message": "not yours"}}]

    async with fed(gateway) as board:
        await asyncio.to_thread(wait_until, lambda: board.problem, "the problem is shown")

    assert board.problem == "alice: not yours"


async def test_the_shard_map_is_followed(gateway: FakeGateway) -> None:
    board = Board()
    gateway.pages["/v1/shards"] = {"shards": [{"store": "orders-by-key", "partition": 1, "replicas": []}]}

    async with gateway.running() as stack, GatewayClient(stack, ALICE) as client:
        following = asyncio.create_task(follow_shards(client, board))
        await asyncio.to_thread(wait_until, lambda: board.shards, "the shard map is read")
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)

    assert board.shards[0].partition == 1
