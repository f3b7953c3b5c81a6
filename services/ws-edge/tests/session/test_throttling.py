"""A frame that is refused because there are too many, or because it is wrong, is refused by its id."""

import json
from typing import Any

import pytest
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from statecast_client.push import PushClient
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey
from ws_edge.settings import Settings

ORDERS = "orders-by-key"


async def refusal(socket: ClientConnection) -> dict[str, Any]:
    """Returns the next frame that is an error."""
    while True:
        frame: dict[str, Any] = json.loads(await socket.recv())
        if "error" in frame:
            return frame


async def test_a_throttled_request_is_refused_by_its_id() -> None:
    async with RunningEdge(consumer_frames_per_s=1, frames_burst_s=1) as edge, edge.socket("/v1/stream") as socket:
        for name in ("first", "second"):
            await socket.send(json.dumps({"id": name, "subscribe": {"store": ORDERS, "key": {"group": name}}}))
        frame = await refusal(socket)

    assert (frame["id"], frame["error"]["code"]) == ("second", "too_many_frames")


async def test_a_throttled_order_is_refused_by_its_id() -> None:
    async with RunningEdge(consumer_frames_per_s=1, frames_burst_s=1) as edge, edge.socket() as socket:
        for name in ("1", "2"):
            await socket.send(json.dumps({"type": "order_updates_request", "order_id": name}))
        frame = await refusal(socket)

    assert (frame["error"]["order_id"], frame["error"]["code"]) == ("2", "too_many_frames")


@pytest.mark.parametrize("wrong", [{"subscribe": {"store": 5}}, {"subscribe": {"nothing": 1}}, {"none": {}}])
async def test_a_wrong_frame_is_refused_by_its_id(edge: RunningEdge, wrong: dict[str, Any]) -> None:
    async with edge.socket("/v1/stream") as socket:
        await socket.send(json.dumps({"id": "7"} | wrong))
        frame = await refusal(socket)

    assert (frame["id"], frame["error"]["code"]) == ("7", "malformed_frame")


async def test_no_subscription_is_lost_by_a_client_that_asks_faster_than_it_may() -> None:
    names = [str(number) for number in range(6)]
    async with RunningEdge(consumer_frames_per_s=2, frames_burst_s=1) as edge:
        for name in names:
            edge.query.put(StoreKey(ORDERS, name), Order(order_id=name, customer_id="customer-0001"))
        async with PushClient(f"ws://{edge.address}/v1/stream", credentials=edge.headers()) as client:
            subscriptions = [await client.subscribe(ORDERS, name) for name in names]
            updates = [await anext(subscription) for subscription in subscriptions]

    assert [update.key.group for update in updates] == names


def test_a_consumer_and_an_address_may_resume_at_once_all_that_they_may_watch() -> None:
    fields = Settings.model_fields
    defaults = {name: field.default for name, field in fields.items()}
    for who in ("consumer", "address"):
        burst = defaults[f"{who}_frames_per_s"] * defaults["frames_burst_s"]

        assert burst >= defaults[f"{who}_subscriptions"]


@pytest.mark.parametrize("path", ["/update/orders", "/v1/stream"])
async def test_the_empty_binary_message_by_which_a_phone_pings_is_ignored(edge: RunningEdge, path: str) -> None:
    async with edge.socket(path) as socket:
        await socket.send(b"")
        await socket.send("{}")
        frames = [json.loads(await socket.recv())]
        await socket.close()
        frames += [json.loads(frame) async for frame in socket]

    assert [frame["error"]["code"] for frame in frames] == ["malformed_frame"]
