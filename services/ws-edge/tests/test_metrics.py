"""The metrics of an edge count as documented, and the README lists them."""

from pathlib import Path

from httpx import AsyncClient
from prometheus_client.parser import text_string_to_metric_families

from statecast.orders.v1.order_pb2 import Order
from testkit.reference import SUFFIXES
from testkit.ws_edge.edge import RunningEdge
from ws_edge.metrics import FrameTally
from ws_edge.model.states import StoreKey

KEY = StoreKey("orders-by-key", "12345")


async def scrape(client: AsyncClient) -> dict[str, float]:
    text = (await client.get("/metrics")).text
    return {
        sample.name + "".join(sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_sockets_subscriptions_keys_frames_and_ages_are_counted(edge: RunningEdge, alice: AsyncClient) -> None:
    edge.query.put(KEY, Order(order_id="12345", customer_id="customer-0001"))
    async with edge.socket("/update/orders/12345") as one, edge.socket("/update/orders/12345") as two:
        await one.recv()
        await two.recv()
        edge.query.put(KEY, Order(order_id="12345", customer_id="customer-0001"))
        await one.recv()
        await two.recv()
        await two.send("nonsense")
        await two.recv()
        samples = await scrape(alice)

    assert samples["ws_edge_sockets"] == 2
    assert samples["ws_edge_sockets_opened_total"] == 2
    assert (samples["ws_edge_subscriptions"], samples["ws_edge_unique_keys"]) == (2, 1)
    assert samples["ws_edge_frames_sent_total"] == 5
    assert samples["ws_edge_age_seconds_count"] == 2
    assert samples["ws_edge_changed_keys_total"] == 2
    assert samples["ws_edge_polled_keys_total"] >= 2
    assert samples["ws_edge_poll_seconds_countorders-by-key"] >= 2
    assert samples["ws_edge_errors_totalmalformed_frame"] == 1
    assert samples["ws_edge_query_available"] == 1


async def test_every_metric_is_listed_in_the_readme(edge: RunningEdge, alice: AsyncClient) -> None:
    text = (await alice.get("/metrics")).text
    families = [family for family in text_string_to_metric_families(text) if not family.name.endswith("_created")]

    readme = (Path(__file__).parents[1] / "README.md").read_text()
    for family in families:
        name = family.name + SUFFIXES.get(family.type, "")
        assert f"\n| `{name}` |" in readme


def test_ages_fall_into_the_bucket_that_holds_them() -> None:
    tally = FrameTally()
    for age in (0.01, 0.011, 100.0):
        tally.aged(age)
    *_, histogram = tally.collect()
    buckets = {sample.labels.get("le"): sample.value for sample in histogram.samples if "le" in sample.labels}

    assert (buckets["0.01"], buckets["0.025"], buckets["60.0"], buckets["+Inf"]) == (1, 2, 2, 3)


def test_a_change_of_a_source_with_a_fast_clock_has_no_age() -> None:
    tally = FrameTally()
    for age in (2.0, -3600.0):
        tally.aged(age)
    [total] = [each.value for family in tally.collect() for each in family.samples if each.name.endswith("_sum")]

    assert total == 2
