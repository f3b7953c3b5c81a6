"""Matches about to start and their markets, told by a real query service and an edge: what can go wrong does."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from drivers.odds_board import FIRST, MATCHES, MESSAGES, Board, OddsWriter
from httpx import AsyncClient

from statecast.push.v1.range_pb2 import RangeChanged
from statecast_client.push import PushClient
from testkit.broker import BrokerProcess
from testkit.query_cluster import QueryCluster, query_cluster
from testkit.relay import Relay
from testkit.ws_edge.edge import RunningEdge
from ws_edge.channels import EDGE_STORES

pytestmark = pytest.mark.timeout(300)
SOCKETS = 100
STORES = "stores:\n" + "".join(
    f"  - {{name: {name}, message: {message}, keeps: members, owner: everyone}}\n" for name, message in MESSAGES.items()
)


class OddsRig:
    """What a story works with."""

    def __init__(self, cluster: QueryCluster, edge: RunningEdge, relay: Relay) -> None:
        self.cluster, self.edge, self.relay = cluster, edge, relay
        self.odds = OddsWriter(cluster.bootstrap)

    def board(self) -> Board:
        """A board of a customer, whose connection the relay can cut."""
        return Board(self.relay.address, self.edge.headers())


@pytest.fixture
async def rig(query_broker: BrokerProcess, tmp_path: Path) -> AsyncIterator[OddsRig]:
    """Two query instances, an edge, and a relay before it."""
    (tmp_path / "edge-stores.yaml").write_text(STORES)
    with query_cluster(query_broker.bootstrap, tmp_path / "cluster") as cluster:
        for name, message in MESSAGES.items():
            cluster.add_keyed_store(name, message)
        for name, store in EDGE_STORES.items():
            cluster.add_plain_store(name, store.kind)
        cluster.start("query-1", "query-2")
        settings: dict[str, Any] = {
            "stores": tmp_path / "edge-stores.yaml",
            "query_addresses": tuple(instance.address for instance in cluster.instances.values()),
        }
        async with RunningEdge(**settings) as edge, Relay(edge.address) as relay:
            yield OddsRig(cluster, edge, relay)


async def test_what_can_go_wrong_with_a_board_of_odds(rig: OddsRig) -> None:
    """A market that is not there yet, a service that is lost, a page from a cache, and everybody at once."""
    async with rig.board() as board:
        await the_unknown_market_appears(rig, board)
        await a_service_is_lost(rig, board)
    await what_is_newer_than_a_page_follows(rig)
    await everybody_comes_back_with_positions(rig)


async def the_unknown_market_appears(rig: OddsRig, board: Board) -> None:
    rig.odds.put_match("m1")
    await board.until("m1")
    rig.odds.put_market("m1", "winner")
    await board.until("m1", "m1/winner")


async def a_service_is_lost(rig: OddsRig, board: Board) -> None:
    """Each of the two has been the owner of some partition: the other one answers for it."""
    lost = rig.cluster.instances["query-1"]
    lost.kill()
    rig.odds.put_match("m2")
    rig.odds.put_market("m2", "winner")
    await board.until("m1", "m1/winner", "m2", "m2/winner")
    rig.odds.remove_match("m1")
    await board.until("m2", "m2/winner")

    assert board.snapshots == 1


async def what_is_newer_than_a_page_follows(rig: OddsRig) -> None:
    headers = rig.edge.headers()
    async with AsyncClient(base_url=f"http://{rig.edge.address}", headers=headers, timeout=60) as client:
        answer = await client.get(f"/v1/stores/{MATCHES}/groups/{FIRST.group}", params={"limit": FIRST.limit})
    page = answer.json()
    rig.odds.put_match("m3")
    async with PushClient(f"ws://{rig.relay.address}/v1/stream", credentials=headers) as push:
        newer = await push.watch_range(FIRST, after=page["through"], interval_ms=0)
        change = await anext(newer)

    assert [row["row"]["match_id"] for row in page["states"]] == ["m2"]
    assert isinstance(change, RangeChanged)
    assert (change.key.member, newer.recovered) == ("m3", True)
    assert answer.headers["Cache-Control"].startswith("public")


async def everybody_comes_back_with_positions(rig: OddsRig) -> None:
    async with AsyncExitStack() as open_boards:
        boards = [await open_boards.enter_async_context(rig.board()) for _ in range(SOCKETS)]
        for board in boards:
            await board.until("m2", "m2/winner", "m3")
        await rig.relay.cut()
        rig.odds.put_market("m2", "winner", "another name")
        rig.odds.put_market("m3", "goals")
        for board in boards:
            await board.until("m2", "m2/winner", "m3", "m3/goals")
            await board.until_named("m2/winner", "another name")

    assert {board.snapshots for board in boards} == {1}, "each has resumed"
