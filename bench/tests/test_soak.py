"""Memory that rises is told from memory that only trembles, and from the first growth of caches."""

import random
import time
from collections import Counter

import pytest

from bench.edge_rig import SECRET
from bench.soak import Customer, is_flat
from statecast.orders.v1.order_pb2 import Order
from statecast_client.client import StatecastClient
from testkit.ws_edge.edge import RunningEdge
from ws_edge.model.states import StoreKey

SECONDS = 1500


@pytest.mark.parametrize(
    ("megabytes_per_hour", "noise", "flat"), [(0.0, 1.0, True), (2.0, 0.1, True), (30.0, 1.0, False), (8.0, 0.1, False)]
)
def test_only_a_trend_above_the_noise_is_growth(megabytes_per_hour: float, noise: float, flat: bool) -> None:
    chance = random.Random(7)
    samples = [
        (float(s), 100 + megabytes_per_hour * s / 3600 + chance.gauss(0, noise)) for s in range(300, 300 + SECONDS)
    ]

    assert is_flat("a process", samples) is flat


def test_memory_that_has_filled_up_is_flat_although_it_never_falls() -> None:
    assert is_flat("a process", [(float(s), 100 + min(s / 100, 1.0)) for s in range(SECONDS)])


async def test_a_customer_finds_all_that_a_visit_asks_for() -> None:
    requests: Counter[str] = Counter()
    async with RunningEdge(kafka=True, gateway_secret=SECRET, min_interval_ms=20, tick_ms=5) as edge:
        order = Order(order_id="order-0-0", customer_id="customer-0000")
        for name in ("order-0-0", "order-0-1"):
            edge.query.put(StoreKey("orders-by-customer", "customer-0000", name, name), order)
        async with StatecastClient([edge.query.address]) as queries:
            await Customer(0, edge.address, queries, requests).visit_until(time.monotonic() + 1.0)

    visits = requests["channel"]
    asked = {"watch": 25, "renew": 5, "HTTP 404": 3}
    assert visits >= 1
    assert {kind: requests[kind] for kind in asked} == {kind: visits * number for kind, number in asked.items()}
