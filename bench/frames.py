"""How many frames a second reach clients behind the gateway when many watch the same few busy orders."""

import asyncio
import json
import threading
import time

from drivers.mobile import Gateway, Phone, watch_request
from drivers.source import OrderSource
from websockets.asyncio.client import connect

from statecast.orders.v1.order_pb2 import OrderStatus

SOCKETS = 200
HOT_ORDERS = 10
INTERVAL_MS = 100
CHANGES_PER_S = 200
MEASURE_S = 8.0


def measure(gateway: Gateway, staff: Phone, source: OrderSource) -> dict[str, float]:
    """Frames per second over all sockets, while the hot orders change faster than the interval."""
    order_ids = [source.place("customer-bench", {"item-bench": 1}).order_id for _ in range(HOT_ORDERS)]
    done = threading.Event()
    changing = threading.Thread(target=_keep_changing, args=(source, order_ids, done))
    changing.start()
    try:
        return {"frames_per_s": asyncio.run(_count_frames(gateway, staff, order_ids))}
    finally:
        done.set()
        changing.join()


def _keep_changing(source: OrderSource, order_ids: list[str], done: threading.Event) -> None:
    turn = 0
    while not done.wait(1 / CHANGES_PER_S):
        status = OrderStatus.ORDER_STATUS_PAID if turn % 2 else OrderStatus.ORDER_STATUS_PACKED
        source.advance(order_ids[turn % len(order_ids)], status)
        turn += 1


async def _count_frames(gateway: Gateway, staff: Phone, order_ids: list[str]) -> float:
    counts = [0] * SOCKETS

    async def watch(number: int) -> None:
        url = f"{gateway.wss}/update/orders"
        async with connect(url, additional_headers=staff.headers, ssl=gateway.tls(), compression=None) as socket:
            for order_id in order_ids:
                await socket.send(json.dumps(watch_request(order_id, INTERVAL_MS)))
            async for _ in socket:
                counts[number] += 1

    watching = [asyncio.create_task(watch(number)) for number in range(SOCKETS)]
    while not all(counts):
        for task in watching:
            if task.done():
                task.result()
        await asyncio.sleep(0.05)
    before, start = sum(counts), time.perf_counter()
    await asyncio.sleep(MEASURE_S)
    rate = (sum(counts) - before) / (time.perf_counter() - start)
    for task in watching:
        task.cancel()
    await asyncio.gather(*watching, return_exceptions=True)
    return round(rate)
