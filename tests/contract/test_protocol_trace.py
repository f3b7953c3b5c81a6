"""The trace on the protocol's page is true: a client plays it against two edges, one after the other."""

import re
from dataclasses import replace
from pathlib import Path

from statecast.odds.v1.market_pb2 import Market, Outcome
from statecast.orders.v1.order_pb2 import ORDER_STATUS_PAID, Order
from testkit.ws_edge.answers import at, keyed, news, resuming, whole
from testkit.ws_edge.fake_query_service import SHIPPED_STORES
from testkit.ws_edge.one_socket import OneSocket, settle
from ws_edge.auth.gateway import Credential
from ws_edge.model.authorization import EVERYONE
from ws_edge.model.states import KeyState, StoreKey
from ws_edge.upstream.queries import Progress, RangeResult
from ws_edge.watches.watch import Watch

PAGE = Path(__file__).parents[2] / "docs/websocket-protocol.md"
MATCH = "match-000123"
START = 1_200_000
"""The offset before the trace."""
STORES = SHIPPED_STORES["odds-by-match"], SHIPPED_STORES["orders-by-key"]
SILENCE = '{"ping":{}}'


def trace() -> list[str]:
    """Returns the lines of the trace, each with its whole frame and without spaces."""
    section = PAGE.read_text().split("## A complete trace")[1].split("\n## ")[0]
    block = "".join(line[4:] + "\n" for line in section.splitlines() if line.startswith("    "))
    return [re.sub(r"\s+", "", line) for line in re.split(r"\n(?=[<>])", block)]


def matches(line: str, frame: str) -> bool:
    """Returns whether a frame matches a line, in which `…` stands for anything."""
    return re.fullmatch(re.escape(line[1:]).replace("…", ".*"), frame.replace(" ", "")) is not None


class Player:
    """Sends the lines of the client, and checks those of the edge."""

    def __init__(self) -> None:
        self.lines = trace()

    async def says(self, socket: OneSocket) -> None:
        line = self.lines.pop(0)
        await socket.send(line[1:])

        assert line.startswith(">")

    async def hears(self, socket: OneSocket) -> None:
        await settle()
        line, frame = self.lines.pop(0), SILENCE
        while frame == SILENCE and socket.unread:
            frame = str(await socket.recv())

        assert matches(line, frame), f"the page has {line}, and the edge sends {frame}"


def socket_of_a_token() -> OneSocket:
    """Returns a socket with a token that is valid for an hour."""
    socket = OneSocket(*STORES)
    credential = Credential(expires_at=socket.wall_clock.now + 3600)
    socket.session.caller = replace(socket.session.caller, credential=credential)
    return socket


def market(number: int, name: str, offset: int, suspended: bool = False) -> KeyState:
    key = StoreKey("odds-by-match", MATCH, name, f"{MATCH.replace('match', 'market')}-{number}")
    row = Market(market_id=key.member, match_id=MATCH, name=name, suspended=suspended)
    row.outcomes.add().CopyFrom(Outcome(name="home", odds_thousandths=1850))
    return KeyState(key, at(START + offset), row, EVERYONE)


def order(offset: int, *, is_gone: bool = False) -> KeyState:
    row = None if is_gone else Order(order_id="order-000001", customer_id="alice", status=ORDER_STATUS_PAID)
    return KeyState(StoreKey("orders-by-key", "order-000001"), at(START + offset), row=row, owner="alice")


def due(socket: OneSocket) -> dict[str, Watch]:
    """Returns the watches with a due read, by store."""
    return {watch.question.store.name: watch for watch in socket.hub.take_due()}


async def happens(socket: OneSocket, result: RangeResult) -> None:
    """Answers the next read of the result's store with the result, and the others with no change."""
    store = (*result.states, *result.removals)[0].key.store
    await socket.passes(1)
    for name, watch in due(socket).items():
        if name == store:
            socket.hub.answered(watch, result)
        else:
            socket.hub.unchanged(watch, Progress())
    await settle()


async def passes_quietly(socket: OneSocket, seconds: int, through: int) -> None:
    """Lets time pass. Meanwhile the stores move on, but no watched row changes."""
    for _ in range(seconds):
        await socket.passes(1)
        for watch in socket.hub.take_due():
            socket.hub.unchanged(watch, Progress(None if watch.question.is_key else at(START + through)))


async def test_the_trace_of_the_page_is_what_happens() -> None:
    player = Player()
    winner, goals = market(1, "match winner", 3), market(2, "total goals", 4)
    suspended, removed = market(1, "match winner", 6, suspended=True), replace(goals, position=at(START + 7), row=None)
    async with socket_of_a_token() as socket:
        await player.hears(socket)
        await player.says(socket)
        asked = due(socket)
        socket.hub.answered(asked["orders-by-key"], keyed(order(4)))
        await player.hears(socket)
        socket.hub.answered(asked["odds-by-match"], whole(winner, goals, through=START + 5))
        await player.hears(socket)
        await happens(socket, news(suspended, after=START + 5, through=START + 6))
        await player.hears(socket)
        await happens(socket, news(removed, after=START + 6, through=START + 7))
        await player.hears(socket)
        await happens(socket, keyed(order(8, is_gone=True)))
        await player.hears(socket)
        await passes_quietly(socket, 60, through=300)
        await player.hears(socket)
        await player.says(socket)
        await player.hears(socket)
        socket.session.leave(3.4)
        await player.hears(socket)

    assert player.lines.pop(0).startswith("<close1012")
    async with socket_of_a_token() as socket:
        await player.hears(socket)
        await player.says(socket)
        answer = resuming(suspended, after=START + 300, through=START + 300)
        socket.hub.answered(due(socket)["odds-by-match"], answer)
        await player.hears(socket)

    assert not player.lines
