"""A narrower right holds as soon as the query service has reported it."""

from typing import Any

from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Value

from testkit.waiting import wait_until_async
from testkit.ws_edge.edge import RunningEdge, until
from testkit.ws_edge.stream import stream_client
from ws_edge.model.states import StoreKey

ROW: dict[str, Any] = {"customer_id": "customer-0001", "address": "Hidden Lane"}
ENTRY = "stores: [{name: parcels, message: json, keeps: one, readers: everyone, private: [%s]}]"


async def test_a_field_that_becomes_private_is_in_no_answer_and_no_cache_may_keep_one_or_have_one_confirmed() -> None:
    async with RunningEdge(stores=ENTRY % "", shard_refresh_ms=100) as edge, edge.client("customer-0002") as stranger:
        edge.query.put(StoreKey("parcels", "1"), ParseDict(ROW, Value()))
        before = answer = await stranger.get("/v1/stores/parcels/rows?group=1")
        copy = {"If-None-Match": before.headers["ETag"]}
        edge.query.define(ENTRY % "{path: address, owner: customer_id}")

        async def is_hidden() -> bool:
            nonlocal answer
            answer = await stranger.get("/v1/stores/parcels/rows?group=1", headers=copy)
            return answer.status_code == 200 and "Hidden Lane" not in answer.text

        await wait_until_async(is_hidden, lambda: answer.text)

    assert "public" in before.headers["Cache-Control"]
    assert [each["row"] for each in answer.json()["rows"]] == [{"customer_id": "customer-0001"}]
    assert "public" not in answer.headers["Cache-Control"]


async def test_those_who_watch_a_store_that_changes_come_back_at_different_times() -> None:
    ids = range(1, 31)
    async with RunningEdge(stores=ENTRY % "", shard_refresh_ms=100) as edge, stream_client(edge) as client:
        await client.say(watch=[{"id": each, "store": "parcels", "group": str(each)} for each in ids])
        for each in ids:
            await client.until_current(each)
        edge.query.define(ENTRY % "{path: address, owner: customer_id}")
        while len(client.ended) < len(ids):
            await client.next()

    assert {each["code"] for each in client.ended.values()} == {"store_changed"}
    assert len({each["retry_ms"] for each in client.ended.values()}) > len(ids) / 2


async def test_a_watch_that_waits_to_be_paid_for_is_begun_by_the_rights_of_now() -> None:
    running = RunningEdge(stores=ENTRY % "", shard_refresh_ms=100, consumer_frames_per_s=2, frames_burst_s=1)
    async with running as edge, stream_client(edge) as client:
        edge.query.put(StoreKey("parcels", "1"), ParseDict(ROW, Value()))
        await client.say(watch=[{"id": 1, "store": "parcels", "group": "1"}], unknown="x" * 12_000)
        edge.query.define((ENTRY % "").replace("everyone", "staff"))
        await until(lambda: not edge.parts.live_stores.stores["parcels"].rule.everyone)
        while not (client.ended or client.current):
            await client.next()

    assert client.rows.get((1, ""), {}) == {}
    assert client.ended[1]["code"] == "store_changed"
    assert "retry_ms" in client.ended[1]
