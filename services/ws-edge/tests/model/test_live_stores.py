"""The stores of the query service change while the edge serves, and the query service comes and goes."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Value
from httpx import AsyncClient

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import DEFAULTS, SECRET, FakeQueryService, RunningEdge, gateway_headers, until
from testkit.ws_edge.odds import STORES as ODDS_STORES
from testkit.ws_edge.odds import odds_edge, put_market, put_match
from testkit.ws_edge.stream import StreamClient, stream_client
from ws_edge.__main__ import build, run
from ws_edge.model.states import StoreKey
from ws_edge.server import listen
from ws_edge.session import sockets
from ws_edge.settings import Settings

ORDER = "statecast.orders.v1.Order"
STORES = {"orders-by-key": "{field: customer_id}", "orders-by-item": "everyone"}
KEYS = [StoreKey("orders-by-key", "1"), StoreKey("orders-by-item", "1")]


def stores(readers: dict[str, str], *more: str) -> str:
    entries = [f"{{name: {name}, message: {ORDER}, readers: {each}}}" for name, each in readers.items()]
    return f"stores: [{', '.join([*entries, *more])}]"


@pytest.fixture
async def edge() -> AsyncIterator[RunningEdge]:
    """An edge before orders of each customer, and orders that everyone may read, with a row in each store."""
    async with RunningEdge(stores=stores(STORES), shard_refresh_ms=100) as running:
        for key in [*KEYS, StoreKey("late", "1")]:
            running.query.put(key, Order(order_id="1", customer_id="customer-0001"))
        yield running


def is_ok(edge: RunningEdge) -> bool:
    return edge.metric("stores_ok") == 1


async def watch(client: StreamClient, watch_id: int, store: str) -> Any:
    """Watches a key. Returns its row, None without one, or the code of an end."""
    await client.say(watch=[{"id": watch_id, "store": store, "group": "1", "interval_ms": 20}])
    while watch_id not in client.current | client.ended.keys():
        await client.next()
    return client.ended[watch_id]["code"] if watch_id in client.ended else client.rows[watch_id, ""].get("")


async def end_of(client: StreamClient, watch_id: int) -> str:
    """Receives until the watch has ended; returns the code."""
    while watch_id not in client.ended:
        await client.next()
    return str(client.ended[watch_id]["code"])


async def get(edge: RunningEdge, store: str) -> int:
    async with edge.client() as client:
        return (await client.get(f"/v1/stores/{store}/rows?group=1")).status_code


async def test_a_new_store_is_read_and_watched_on_sockets_that_are_open(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        assert await watch(client, 1, "late") == "unknown_store"

        edge.query.define(stores(STORES | {"late": "everyone"}))
        await until(lambda: "late" in edge.parts.live_stores.stores)

        assert (await watch(client, 2, "late"))["order_id"] == "1"
        assert await get(edge, "late") == 200


async def test_a_narrower_rule_ends_the_watches_of_the_store_and_no_others(edge: RunningEdge) -> None:
    async with stream_client(edge) as client:
        await watch(client, 1, "orders-by-item")
        await watch(client, 2, "orders-by-key")
        edge.query.define(stores(STORES | {"orders-by-item": "staff"}))

        assert await end_of(client, 1) == "store_changed"
        assert 0 <= client.ended[1].get("retry_ms", 0) < 5000
        assert edge.parts.hub.subscriptions == 1
        assert await watch(client, 3, "orders-by-item") == "unknown_store"
        assert await get(edge, "orders-by-item") == 404

        for key in reversed(KEYS):
            edge.query.put(key, Order(order_id="1", customer_id="customer-0001", total_cents=1))
        assert (await client.next())["id"] == 2


async def test_a_narrower_rule_ends_the_watches_that_have_the_store_in_a_step() -> None:
    first = {"store": "matches-by-sport", "group": "football", "interval_ms": 0}
    steps = [[{"store": name, "group_field": "match_id"}] for name in ("odds-by-match", "market-by-key")]
    async with odds_edge(shard_refresh_ms=100) as edge, stream_client(edge) as client:
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        await client.say(watch=[{"id": number, **first, "steps": each} for number, each in enumerate(steps, 1)])
        await client.until_current(1)
        await client.until_current(2)
        markets = "{name: odds-by-match, message: statecast.odds.v1.Market, keeps: members, readers: "
        edge.query.define(ODDS_STORES.replace(f"{markets}everyone", f"{markets}staff"))

        assert await end_of(client, 1) == "store_changed"
        assert "odds-by-match" in client.ended[1]["message"]
        put_match(edge, "m2")
        while "m2" not in client.rows[2, ""]:
            await client.next()


async def test_the_watches_of_a_changed_store_end_in_pieces_and_are_sent_no_row_meanwhile(
    edge: RunningEdge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "ENDING_S", 0.0)
    counts = set[int]()
    async with stream_client(edge) as client:
        asked = {"store": "orders-by-item", "group": "1", "interval_ms": 0}
        await client.say(watch=[{"id": number, **asked} for number in range(1, 101)])
        await client.until_current(100)

        async def count() -> None:
            while edge.parts.hub.subscriptions:
                counts.add(edge.parts.hub.subscriptions)
                if len(counts) == 2:
                    edge.query.put(KEYS[1], Order(order_id="1", total_cents=1))
                await asyncio.sleep(0)

        edge.query.define(stores(STORES | {"orders-by-item": "staff"}))
        await count()
        frames = [await client.next() for _ in range(100)]

    assert len(counts) == 100
    assert all(frame["ended"]["code"] == "store_changed" for frame in frames)


async def test_a_wider_rule_shows_what_was_hidden(edge: RunningEdge) -> None:
    async with stream_client(edge, consumer="customer-0002") as client:
        assert await watch(client, 1, "orders-by-key") is None

        edge.query.define(stores(STORES | {"orders-by-key": "everyone"}))
        await end_of(client, 1)

        assert (await watch(client, 2, "orders-by-key"))["order_id"] == "1"


async def test_a_message_that_is_mounted_with_more_fields_ends_the_watches_of_its_rows(tmp_path: Path) -> None:
    messages, key = tmp_path / "messages", StoreKey("parcels", "1")
    messages.mkdir()
    text = 'syntax = "proto3"; package acme.v1; message Parcel { string name = 1; %s }'
    (messages / "parcel.proto").write_text(text % "")
    entry = "stores: [{name: parcels, message: acme.v1.Parcel, readers: everyone}]"
    mounted: dict[str, Any] = {"STATECAST_DESCRIPTORS": messages}
    async with (
        RunningEdge(stores=entry, shard_refresh_ms=100, **mounted) as edge,
        stream_client(edge, consumer="customer-0002") as client,
    ):
        edge.query.put(key, Order(order_id="p-1", customer_id="Ghent"))  # its texts are fields 1 and 2, as in a parcel
        before = await watch(client, 1, "parcels")
        async with edge.client() as caller:
            copy = {"If-None-Match": (await caller.get("/v1/stores/parcels/rows?group=1")).headers["ETag"]}
        (messages / "parcel.proto").write_text(text % "string city = 2;")
        end = await end_of(client, 1)
        after = await watch(client, 2, "parcels")
        async with edge.client() as caller:
            answer = await caller.get("/v1/stores/parcels/rows?group=1", headers=copy)

    assert (answer.status_code, answer.json()["rows"][0]["row"]) == (200, after)
    assert end == "store_changed"
    assert (before, after) == ({"name": "p-1"}, {"name": "p-1", "city": "Ghent"})


PRIVATE = "private: [{path: address.street, owner: customer_id}]"


async def test_a_private_field_that_is_added_ends_the_watches_that_were_shown_it() -> None:
    key, entry = StoreKey("parcels", "1"), "stores: [{name: parcels, message: json, readers: everyone, %s}]"
    row = {"customer_id": "customer-0001", "address": {"street": "Hidden Lane", "city": "Ghent"}}
    shown = []
    async with (
        RunningEdge(stores=entry % "private: []", shard_refresh_ms=100) as edge,
        stream_client(edge, consumer="customer-0002") as client,
    ):
        edge.query.put(key, json_format.ParseDict(row, Value()))
        others = (PRIVATE, "private: [{path: address, owner: customer_id}]", "private: []")
        for watch_id, private in enumerate(others, 1):
            shown.append(json.dumps(await watch(client, watch_id, "parcels")))
            edge.query.define(entry % private)
            assert await end_of(client, watch_id) == "store_changed"

    assert ["Hidden Lane" in text for text in shown] == [True, False, False]
    assert ["Ghent" in text for text in shown] == [True, True, False]


async def test_a_row_in_which_a_private_path_does_not_lead_is_hidden_counted_and_named() -> None:
    key, entry = StoreKey("parcels", "1"), f"{{name: parcels, message: json, readers: everyone, {PRIVATE}}}"
    async with RunningEdge(stores=f"stores: [{entry}]") as edge, stream_client(edge) as client:
        edge.query.put(key, json_format.ParseDict({"Address": {"street": "Hidden Lane"}}, Value()))
        with structlog.testing.capture_logs() as logs:
            await watch(client, 1, "parcels")
        hidden = edge.metric("hidden_rows_total", store="parcels")

    assert client.rows[1, ""] == {"": None}
    assert hidden
    assert str(logs).count("private_path_missed") == 1


@pytest.mark.parametrize(
    "entry",
    [
        "{name: late, message: acme.v1.Parcel, readers: everyone}",
        f"{{name: late, message: {ORDER}, readers: {{field: nobody}}}}",
        f"{{name: late, message: {ORDER}, readers: everyone, private: [{{path: item, owner: customer_id}}]}}",
    ],
)
async def test_a_store_that_this_edge_cannot_show_is_left_out_and_the_others_are_served(
    edge: RunningEdge, entry: str
) -> None:
    edge.query.define(stores(STORES, entry))
    await until(lambda: not is_ok(edge))
    async with stream_client(edge) as client:
        assert (await watch(client, 1, "orders-by-key"))["order_id"] == "1"
        assert await watch(client, 2, "late") == "unknown_store"

    assert edge.parts.shard_watch.reason is None

    edge.query.define(stores(STORES | {"late": "everyone"}))
    await until(lambda: "late" in edge.parts.live_stores.stores)
    await until(lambda: is_ok(edge))


@pytest.mark.parametrize("store", ["push-channels", "revoked-consumers"])
async def test_clients_cannot_read_what_edges_keep(edge: RunningEdge, store: str) -> None:
    async with edge.client("", "staff") as client:
        answer = await client.get(f"/v1/stores/{store}/rows?group=1")

    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "unknown_store")


async def test_an_edge_waits_for_a_query_service_that_says_who_may_read_its_stores() -> None:
    service = FakeQueryService()
    service.is_older = True
    address = await service.start()
    settings = Settings.model_validate({**DEFAULTS, "query_addresses": (address,), "shard_refresh_ms": 100})
    with listen(settings) as listener:
        url, headers = f"http://127.0.0.1:{listener.getsockname()[1]}", gateway_headers(SECRET, "", "staff")
        task = asyncio.create_task(run(parts := build(settings, None), listener))
        async with AsyncClient(base_url=url, headers=headers) as client:
            await until(lambda: parts.server.started and "older" in str(parts.shard_watch.reason))
            refused = [
                await client.get(path) for path in ("/readyz", "/v1/stores", "/v1/stores/orders-by-key/rows?group=1")
            ]
            service.is_older = False
            await until(lambda: parts.shard_watch.reason is None)
            answers = [
                await client.get(path) for path in ("/readyz", "/v1/stores", "/v1/stores/orders-by-key/rows?group=1")
            ]
        parts.server.handle_exit(15, None)
        await task
    await service.stop()

    assert [answer.status_code for answer in refused] == [503, 503, 503]
    assert "does not say who may read" in refused[0].text
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert answers[2].json()["rows"] == []


async def test_the_rights_that_were_said_last_hold_beside_an_older_query_service_and_without_any(
    edge: RunningEdge,
) -> None:
    edge.query.is_older = True
    await until(lambda: not is_ok(edge))

    assert [await get(edge, name) for name in STORES] == [200, 200]
    assert edge.parts.shard_watch.reason is None

    edge.query.failing = grpc.StatusCode.UNAVAILABLE
    await until(lambda: edge.parts.shard_watch.reason is not None)

    assert {*edge.parts.live_stores.stores} == {*STORES}
