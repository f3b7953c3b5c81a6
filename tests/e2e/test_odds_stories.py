"""Matches about to start and their markets, through the gateway: parts fail, and every client goes on."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from uuid import uuid4

import pytest
from drivers.gateway_client import Frame, OrderSocket
from drivers.odds_board import MARKETS, Board, OddsWriter, matches_of
from drivers.odds_stack import CREDENTIALS, OddsStack, odds_stack
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed, InvalidStatus

from statecast_client.push import PushClient
from statecast_client.tokens import position_in
from testkit.broker import BrokerProcess
from testkit.relay import Relay
from testkit.service_process import ServiceProcess
from testkit.waiting import wait_until_async
from testkit.ws_edge.channels import channel_of
from testkit.ws_edge.stream import StreamClient

pytestmark = pytest.mark.timeout(300)
SOCKETS, WATCHERS = 100, 6
LARGE = ("winner", "goals", "corners")
KEY_FIELDS = "match_id", "market_id"
ROUNDS, ROW_BYTES = 40, 30_000
MAX_ON_THE_WAY = 1_000_000
"""The most bytes that gateway, kernels and the edge's send buffers hold for one socket."""


@pytest.fixture(scope="module")
def stack(query_broker: BrokerProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OddsStack]:
    """The stack of all stories. A story that kills a part starts it again."""
    with odds_stack(query_broker.bootstrap, tmp_path_factory.mktemp("odds")) as running:
        yield running


@pytest.fixture
def odds(stack: OddsStack) -> OddsWriter:
    """The matches of a sport of the story's own."""
    return OddsWriter(stack.cluster.bootstrap, f"sport-{uuid4().hex[:8]}")


@asynccontextmanager
async def boards_of(stack: OddsStack, odds: OddsWriter, count: int, *rows: str) -> AsyncIterator[list[Board]]:
    """Boards of so many customers, which show these rows."""
    async with AsyncExitStack() as opened:
        boards = [Board(stack.address, CREDENTIALS, odds.sport) for _ in range(count)]
        for board in boards:
            await opened.enter_async_context(board)
        for board in boards:
            await board.until(*rows)
        yield boards


def killed_with_sockets(stack: OddsStack) -> ServiceProcess:
    """Kills the edge that has the most sockets."""
    sockets = stack.sockets()
    edge = stack.edges[max(sockets, key=lambda name: sockets[name])]
    edge.kill()
    return edge


async def test_a_market_that_is_not_there_yet_appears(stack: OddsStack, odds: OddsWriter) -> None:
    async with boards_of(stack, odds, 1) as (board,):
        odds.put_match("unknown")
        await board.until("unknown")
        odds.put_market("unknown", "winner")
        await board.until("unknown", "unknown/winner")


async def test_the_query_service_is_lost_and_comes_back(stack: OddsStack, odds: OddsWriter) -> None:
    """First one instance, which owns some partition; then both, and records written meanwhile wait for them."""
    one, both = stack.cluster.instances["query-1"], tuple(stack.cluster.instances.values())
    odds.put_match("lost")
    async with boards_of(stack, odds, 1, "lost") as (board,):
        one.kill()
        odds.put_market("lost", "winner")
        await board.until("lost", "lost/winner")
        await stack.revive(one)
        for instance in both:
            instance.kill()
        odds.put_match("meanwhile")
        odds.put_market("meanwhile", "winner")
        odds.remove_match("lost")
        await stack.revive(*both)
        await board.until("meanwhile", "meanwhile/winner")

    assert board.snapshots == 1, "the socket has stayed, and nothing was told anew"


async def test_what_is_newer_than_a_page_of_a_cache_follows(stack: OddsStack, odds: OddsWriter) -> None:
    first = matches_of(odds.sport)
    odds.put_match("cached")
    async with boards_of(stack, odds, 1, "cached"), stack.calls() as client:
        parameters = {"group": odds.sport, "limit": first["limit"]}
        answer = await client.get(f"/v1/stores/{first['store']}/rows", params=parameters)
    page = answer.json()
    odds.put_match("newer")
    async with PushClient(f"ws://{stack.address}/v1/stream", credentials=CREDENTIALS) as push:
        newer = push.watch(**first, interval_ms=0, resume=page)
        changes = [await anext(newer)]
        while "newer" not in newer.rows:
            changes.append(await anext(newer))

    assert [row["row"]["match_id"] for row in page["rows"]] == ["cached"]
    assert ([name for change in changes for name in change.rows], newer.resumed) == (["newer"], True)
    assert answer.headers["Cache-Control"].startswith("public")


async def test_everybody_comes_back_at_once_with_tokens(stack: OddsStack, odds: OddsWriter) -> None:
    odds.put_match("storm")
    odds.put_market("storm", "winner")
    async with Relay(stack.address) as relay, AsyncExitStack() as opened:
        boards = [Board(relay.address, CREDENTIALS, odds.sport) for _ in range(SOCKETS)]
        for board in boards:
            await opened.enter_async_context(board)
        for board in boards:
            await board.until("storm", "storm/winner")
        await relay.cut()
        odds.put_market("storm", "winner", "another name")
        odds.put_market("storm", "goals")
        for board in boards:
            await board.until("storm", "storm/winner", "storm/goals")
            await board.until_named("storm/winner", "another name")

    assert {board.snapshots for board in boards} == {1}, "each has resumed"


async def test_an_edge_is_killed_and_its_clients_resume_at_the_other(stack: OddsStack, odds: OddsWriter) -> None:
    odds.put_match("killed")
    odds.put_market("killed", "winner")
    async with boards_of(stack, odds, WATCHERS, "killed", "killed/winner") as boards:
        edge = killed_with_sockets(stack)
        odds.put_market("killed", "winner", "another name")
        odds.put_match("later")
        for board in boards:
            await board.until("killed", "killed/winner", "later")
            await board.until_named("killed/winner", "another name")
        (sockets,) = stack.sockets().values()
        await stack.revive_edge(edge)

    assert sockets == WATCHERS
    assert {board.snapshots for board in boards} == {1}, "each has resumed"


async def test_a_query_of_a_channel_goes_on_at_the_other_edge_without_a_gap(stack: OddsStack, odds: OddsWriter) -> None:
    odds.put_match("told")
    odds.put_market("told", "winner")
    async with stack.calls() as client:
        channel = await channel_of(client, q={**matches_of(odds.sport), "steps": [MARKETS], "interval_ms": 0})
    async with socket_of(stack) as before:
        await before.say(watch=[{"id": 1, "channel": channel}])
        await shows(before, "q/told", winner="match winner")
        edge = killed_with_sockets(stack)
        odds.put_market("told", "winner", "another name")
        odds.put_match("missed")
        odds.put_market("missed", "goals")
        with pytest.raises(ConnectionClosed):
            await shows(before, "q/told", winner="a name that it never had")
    below = [{"path": path.split("/"), "token": token} for (_, path), token in before.tokens.items() if path]
    async with socket_of(stack) as after:
        await after.say(watch=[{"id": 1, "channel": channel, "below": below}])
        await shows(after, "q/told", winner="another name")
        await shows(after, "q/missed", goals="match winner")
        resumed = sorted(events_of(after))
        async with stack.calls() as client:
            await client.delete(f"/v1/channels/{channel}/watches/q")
        while after.rows != {(1, ""): {}}:
            await after.next()
    await stack.revive_edge(edge)

    assert [path for path, event in resumed if event == "resumed"] == ["q", "q/told"]
    assert [event for event in resumed if event != ("q", "told")] == [  # which may come again after a resumption
        ("q", "missed"),
        ("q", "resumed"),
        ("q/missed", "begun"),
        ("q/missed", "goals"),
        ("q/told", "resumed"),
        ("q/told", "winner"),
    ]
    assert resumed.count(("q", "told")) <= 1


@asynccontextmanager
async def socket_of(stack: OddsStack) -> AsyncIterator[StreamClient]:
    """Yields a socket, opened as soon as the gateway leads to an edge that lives."""
    opened = list[ClientConnection]()

    async def opens() -> bool:
        with suppress(InvalidStatus):
            opened.append(await stack.socket("/v1/stream"))
        return bool(opened)

    await wait_until_async(opens, "the gateway leads to an edge")
    async with opened[0] as socket:
        yield StreamClient(socket)


async def shows(client: StreamClient, path: str, **names: str) -> None:
    """Reads on until a place of the watch has these markets, and no others, by their names."""
    while {key: row["name"] for key, row in client.rows.get((1, path), {}).items()} != names:
        await client.next()


def events_of(client: StreamClient) -> Iterator[tuple[str, str]]:
    """Yields the beginnings of the places of a query in a channel, and the keys of rows that came, by path."""
    for frame in client.frames:
        names = frame.get("path", [])
        if "watching" in frame and names:
            yield "/".join(names), "resumed" if frame["watching"].get("resumed") else "begun"
        for row in frame.get("rows", ()) if names else ():
            yield "/".join(names), row.get("key") or row["row"][KEY_FIELDS[len(names) - 1]]


async def test_who_stops_reading_delays_nobody_and_is_then_told_the_newest_of_each_market(
    stack: OddsStack, odds: OddsWriter
) -> None:
    odds.put_match("slow")
    for market in LARGE:
        odds.put_market("slow", market, name_in(0))
    await stack.lead_to_each_edge()
    async with boards_of(stack, odds, WATCHERS, "slow", *(f"slow/{market}" for market in LARGE)) as boards:
        assert all(stack.sockets().values()), "at each edge somebody reads"
        with stack.phone().open_unread("/v1/stream") as phone:
            await asyncio.to_thread(watch_until_shown, phone, odds.sport)
            for number in range(1, ROUNDS + 1):
                await change_until_shown(odds, boards, number)
            await asyncio.to_thread(read_until_shown, phone, ROUNDS)

    rows = [row for frame in phone.frames for row in markets_in(frame)]
    offsets = [position_in(frame["token"])[0] for frame in phone.frames if frame.get("path") and "token" in frame]
    assert offsets == sorted(offsets)
    shown = {market: [each for each in rows if each["row"]["market_id"] == market][1:] for market in LARGE}
    # Only what was on the way before it stalled is old; of the rest there was one version of each market.
    assert (sum(map(len, shown.values())) - len(LARGE)) * ROW_BYTES < MAX_ON_THE_WAY
    for late in shown.values():
        numbers = [int(each["row"]["name"].partition("-")[0]) for each in late]
        assert numbers == sorted(set(numbers))
        # The edge has sent each version to other readers, so it counts versions that this one misses as skipped.
        assert len(late) + sum(int(each.get("skipped", 0)) for each in late) == ROUNDS
        assert late[-1]["row"]["name"] == name_in(ROUNDS)


def name_in(number: int) -> str:
    """Returns the name of a market in a round: a long one."""
    return f"{number}-{'x' * ROW_BYTES}"


async def change_until_shown(odds: OddsWriter, boards: Sequence[Board], number: int) -> None:
    """Changes each large market, and returns when all boards show it."""
    for market in LARGE:
        odds.put_market("slow", market, name_in(number))
    for board in boards:
        for market in LARGE:
            await board.until_named(f"slow/{market}", name_in(number))


def watch_until_shown(phone: OrderSocket, sport: str) -> None:
    """Asks for the query and reads on until it shows each large market."""
    phone.send({"watch": [{"id": 1, **matches_of(sport), "steps": [MARKETS], "interval_ms": 0}]})
    read_until_shown(phone, 0)


def read_until_shown(phone: OrderSocket, number: int) -> None:
    """Reads on until each large market is shown as it is in the round."""
    waiting = set(LARGE)
    while waiting:
        waiting -= {
            row["row"]["market_id"] for row in markets_in(phone.next()) if row["row"]["name"] == name_in(number)
        }


def markets_in(frame: Frame) -> list[Frame]:
    """Returns the rows of the place of markets in a frame."""
    return list(frame.get("rows", ())) if frame.get("path") else []
