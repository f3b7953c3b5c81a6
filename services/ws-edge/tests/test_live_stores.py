"""The stores file changes while the edge serves."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.struct_pb2 import Value
from httpx import AsyncClient
from websockets.asyncio.client import ClientConnection

from statecast.orders.v1.order_pb2 import Order
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.odds import MARKETS, QueryReader, odds_edge, put_market, put_match
from ws_edge.errors import CLOSE_RESTART
from ws_edge.states import StoreKey

ORDER = "statecast.orders.v1.Order"
STORES = {"orders-by-key": "{field: customer_id}", "orders-by-item": "everyone"}
KEYS = [StoreKey("orders-by-key", "1"), StoreKey("orders-by-item", "1")]


def write(file: Path, owners: dict[str, str], more: Iterable[str] = ()) -> None:
    lines = [f"  - {{name: {name}, message: {ORDER}, keeps: one, owner: {owner}}}" for name, owner in owners.items()]
    file.write_text("\n".join(["stores:", *lines, *more, ""]))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The stores file: orders of each customer, and orders that everyone may read."""
    write(tmp_path / "stores.yaml", STORES)
    return tmp_path / "stores.yaml"


@pytest.fixture
async def edge(file: Path) -> AsyncIterator[RunningEdge]:
    """An edge that looks at the file often, and a row in each store."""
    async with RunningEdge(
        stores=file, stores_interval_ms=100, shard_refresh_ms=100, rows={"late": ORDER, "other": "json"}
    ) as running:
        for key in [*KEYS, StoreKey("late", "1")]:
            running.query.put(key, Order(order_id="1", customer_id="customer-0001"))
        yield running


def is_ok(edge: RunningEdge) -> bool:
    return edge.parts.metrics.registry.get_sample_value("ws_edge_stores_file_ok") == 1


async def watch(socket: ClientConnection, store: str) -> Any:
    """Watches a key, and returns the first frame of it, or the error."""
    await socket.send(json.dumps({"subscribe": {"store": store, "key": {"group": "1"}}}))
    async with asyncio.timeout(30):
        while True:
            frame = json.loads(await socket.recv())
            if "changed" in frame or "error" in frame:
                return frame


async def get(edge: RunningEdge, store: str) -> int:
    async with AsyncClient(base_url=f"http://{edge.address}", headers=edge.headers(), verify=False) as client:
        return (await client.get(f"/v1/stores/{store}/1")).status_code


async def test_a_new_store_is_read_and_watched_on_sockets_that_are_open(edge: RunningEdge, file: Path) -> None:
    async with edge.socket("/v1/stream") as socket:
        await watch(socket, "orders-by-key")

        assert "error" in await watch(socket, "late")

        write(file, STORES | {"late": "everyone"})
        await until(lambda: "late" in edge.parts.live_stores.stores)

        assert "changed" in await watch(socket, "late")
        assert await get(edge, "late") == 200


async def test_a_narrower_rule_ends_the_sockets_that_watch_the_store_and_no_others(
    edge: RunningEdge, file: Path
) -> None:
    async with edge.socket("/v1/stream") as watching, edge.socket("/v1/stream") as other:
        await watch(watching, "orders-by-item")
        await watch(other, "orders-by-key")
        write(file, STORES | {"orders-by-item": "staff"})
        await watching.wait_closed()

        assert watching.close_code == CLOSE_RESTART
        assert "error" in await watch(other, "orders-by-item")
        assert await get(edge, "orders-by-item") == 403


async def test_watchers_of_a_changed_store_hear_nothing_more_and_are_closed_one_after_the_other(
    edge: RunningEdge, file: Path
) -> None:
    async with edge.socket("/v1/stream") as first, edge.socket("/v1/stream") as last:
        for socket in (first, last):
            await watch(socket, "orders-by-item")
        edge.parts.sockets.admission.pace.per_second = 0.001
        write(file, STORES | {"orders-by-item": "staff"})
        await first.wait_closed()
        subscriptions = edge.parts.hub.subscriptions
        beside = await watch(last, "orders-by-key")

        assert subscriptions == 0
        assert beside["changed"]["store"] == "orders-by-key"
        assert first.close_code == CLOSE_RESTART
        assert last.close_code is None


async def test_a_narrower_rule_ends_the_sockets_whose_queries_watch_the_store(tmp_path: Path) -> None:
    async with (
        odds_edge(tmp_path, stores_interval_ms=100) as edge,
        edge.socket("/v1/stream") as watching,
        edge.socket("/v1/stream") as other,
    ):
        put_match(edge, "m1")
        put_market(edge, "m1", "a")
        reader, unconcerned = QueryReader(watching), QueryReader(other)
        await reader.watch(MARKETS)
        await reader.until(("entered", "m1", "a"))
        await unconcerned.watch({"store": "market-by-key", "group_field": "match_id"})
        await unconcerned.until(("snapshot", "m1", "m1"))
        file = tmp_path / "stores.yaml"
        markets = "{name: odds-by-match, message: statecast.odds.v1.Market, keeps: members, owner: "
        file.write_text(file.read_text().replace(f"{markets}everyone", f"{markets}staff"))
        await watching.wait_closed()

        assert watching.close_code == CLOSE_RESTART
        put_match(edge, "m2")
        await unconcerned.until(("entered", "", "m2"))


async def test_a_wider_rule_shows_what_was_hidden(edge: RunningEdge, file: Path) -> None:
    async with edge.socket("/v1/stream", "customer-0002") as socket:
        assert "error" in await watch(socket, "orders-by-key")

        write(file, STORES | {"orders-by-key": "everyone"})
        await until(lambda: edge.parts.live_stores.stores["orders-by-key"].rule.everyone)

        assert "changed" in await watch(socket, "orders-by-key")


async def test_a_message_that_is_mounted_with_more_fields_ends_the_sockets_that_watch_its_rows(tmp_path: Path) -> None:
    messages, stores, key = tmp_path / "messages", tmp_path / "stores.yaml", StoreKey("parcels", "1")
    messages.mkdir()
    text = 'syntax = "proto3"; package acme.v1; message Parcel { string name = 1; %s }'
    (messages / "parcel.proto").write_text(text % "")
    entry = "stores: [{name: parcels, message: acme.v1.Parcel, keeps: one, owner: everyone}]"
    stores.write_text(entry)
    mounted: dict[str, Any] = {"STATECAST_DESCRIPTORS": messages, "stores": stores}
    async with RunningEdge(stores_interval_ms=100, rows={"parcels": "acme.v1.Parcel"}, **mounted) as edge:
        edge.query.put(key, Order(order_id="p-1", customer_id="Ghent"))  # its texts are fields 1 and 2, as in a parcel
        rows = []
        for fields in ("string city = 2;", "string city = 2; string street = 3;"):
            async with edge.socket("/v1/stream", "customer-0002") as socket:
                rows.append((await watch(socket, "parcels"))["changed"]["row"])
                (messages / "parcel.proto").write_text(text % fields)
                await asyncio.wait_for(socket.wait_closed(), 60)
                assert socket.close_code == CLOSE_RESTART

    assert ["city" in row for row in rows] == [False, True]


PRIVATE = "private: [{path: address.street, owner: customer_id}]"


async def test_a_private_field_that_is_added_ends_the_sockets_that_were_shown_it(tmp_path: Path) -> None:
    file, key = tmp_path / "stores.yaml", StoreKey("parcels", "1")
    entry = "stores: [{name: parcels, message: json, keeps: one, owner: everyone, %s}]"
    file.write_text(entry % "private: []")
    row = {"customer_id": "customer-0001", "address": {"street": "Hidden Lane", "city": "Ghent"}}
    seen = []
    async with RunningEdge(stores=file, stores_interval_ms=100, rows={"parcels": "json"}) as edge:
        edge.query.put(key, json_format.ParseDict(row, Value()))
        for private in (PRIVATE, "private: [{path: address, owner: customer_id}]", "private: []"):
            async with edge.socket("/v1/stream", "customer-0002") as socket:
                seen.append(await watch(socket, "parcels"))
                file.write_text(entry % private)
                await asyncio.wait_for(socket.wait_closed(), 30)
                assert socket.close_code == CLOSE_RESTART

    assert ["Hidden Lane" in json.dumps(frame) for frame in seen] == [True, False, False]
    assert ["Ghent" in json.dumps(frame) for frame in seen] == [True, True, False]


async def test_a_row_in_which_a_private_path_does_not_lead_is_hidden_counted_and_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, key = tmp_path / "stores.yaml", StoreKey("parcels", "1")
    file.write_text(f"stores: [{{name: parcels, message: json, keeps: one, owner: everyone, {PRIVATE}}}]")
    async with RunningEdge(stores=file, rows={"parcels": "json"}) as edge, edge.socket("/v1/stream") as socket:
        edge.query.put(key, json_format.ParseDict({"Address": {"street": "Hidden Lane"}}, Value()))
        frame = await watch(socket, "parcels")
        hidden = edge.parts.metrics.registry.get_sample_value("ws_edge_hidden_rows_total", {"store": "parcels"})

    assert frame["changed"]["row"]["value"] is None
    assert hidden
    assert capsys.readouterr().out.count("private_path_missed") == 1


async def test_a_wrong_file_changes_nothing_and_is_told(edge: RunningEdge, file: Path) -> None:
    async with edge.socket("/v1/stream") as socket:
        await watch(socket, "orders-by-key")
        write(file, STORES, [f"  - {{name: late, message: {ORDER}, keeps: one, owner: {{field: nobody}}}}"])
        await until(lambda: not is_ok(edge))

        assert set(edge.parts.live_stores.stores) == set(STORES)

        write(file, STORES)
        await until(lambda: is_ok(edge))

        assert "changed" in await watch(socket, "orders-by-key")


async def test_a_store_that_the_query_service_has_otherwise_is_left_out_and_the_edge_stays_ready(
    edge: RunningEdge, file: Path
) -> None:
    write(file, STORES | {"other": "everyone", "late": "everyone"})
    await until(lambda: "late" in edge.parts.live_stores.stores and not is_ok(edge))

    assert "other" not in edge.parts.live_stores.stores
    assert edge.parts.shard_watch.reason is None

    edge.query.rows["other"] = ORDER
    await until(lambda: "other" in edge.parts.live_stores.stores)
    await until(lambda: is_ok(edge))
