"""Talking to the gateway as a demo user."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest

from local_stack.certificates import Certificates
from local_stack.gateway_client import UNREACHABLE, GatewayClient, watch_order
from local_stack.stack_file import Basic, Credentials
from local_stack.testing import FakeGateway

ALICE = Credentials(customer_id="customer-0001", basic=Basic(username="alice", password="secret"))
ALICE_AUTHORIZATION = "Basic YWxpY2U6c2VjcmV0"


@pytest.fixture
def gateway(tmp_path: Path) -> FakeGateway:
    return FakeGateway(tmp_path)


async def test_it_reads_a_page_as_its_user(gateway: FakeGateway) -> None:
    gateway.pages["/v1/shards"] = {"shards": []}

    async with gateway.running() as stack, GatewayClient(stack, ALICE) as client:
        page = await client.get("/v1/shards")

    assert page == {"shards": []}
    assert gateway.authorizations == [ALICE_AUTHORIZATION]


async def test_another_status_than_2xx_is_an_error(gateway: FakeGateway) -> None:
    async with gateway.running() as stack, GatewayClient(stack, ALICE) as client:
        with pytest.raises(httpx.HTTPStatusError, match="404"):
            await client.get("/v1/missing")


async def test_it_asks_for_orders_on_a_socket(gateway: FakeGateway) -> None:
    gateway.frames["order-1"] = [{"type": "order_status_update"}]
    position = {"epoch": "1", "offset": "2"}

    async with gateway.running() as stack, GatewayClient(stack, ALICE) as client, client.order_updates() as socket:
        await watch_order(socket, "order-1", 100, position)
        frame = await socket.recv()

    assert frame == '{"type": "order_status_update"}'
    request = {"type": "order_updates_request", "order_id": "order-1", "interval_ms": 100, "position": position}
    assert gateway.requests == [request]
    assert gateway.authorizations == [ALICE_AUTHORIZATION]


async def test_it_trusts_no_other_authority(gateway: FakeGateway, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    async with gateway.running() as stack:
        other = Certificates(tmp_path / "other")
        other.ensure(datetime.now(UTC))
        elsewhere = stack.gateway.model_copy(update={"ca_certificate": other.authority})
        client = GatewayClient(stack.model_copy(update={"gateway": elsewhere}), ALICE)
        async with client:
            with pytest.raises(ssl.SSLCertVerificationError):
                async with client.order_updates():
                    pytest.fail("an unknown authority was trusted")


async def test_a_gateway_that_is_away_is_unreachable(gateway: FakeGateway) -> None:
    async with gateway.running() as stack:
        client = GatewayClient(stack, ALICE)
    async with client:
        with pytest.raises(UNREACHABLE):
            await client.get("/v1/shards")
