"""A socket shows that it lives: pings after silence, with tokens of quiet places and the watches that are blind."""

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from statecast.push.v2.push_pb2 import Bookmark
from testkit.ws_edge.answers import ALICE, BOARDS, SCORES, at, whole
from testkit.ws_edge.one_socket import OneSocket, settle
from testkit.ws_edge.stream import StreamClient
from ws_edge.codec.bodies import json_bytes
from ws_edge.model.authorization import EVERYONE
from ws_edge.model.documents import message_document
from ws_edge.model.json_rows import decode
from ws_edge.model.questions import Question
from ws_edge.model.states import KeyState, StoreKey
from ws_edge.session.pings import max_size
from ws_edge.upstream.queries import Progress, RangeResult
from ws_edge.watches.token import Resumption, mask_of, resumption_of

BOARD = {"store": "boards", "group": "g", "limit": 10}
COMMIT_NS = 1_764_228_005_123_456_000


def board(name: str, offset: int, commit_ns: int | None = None) -> KeyState:
    key = StoreKey("boards", "g", name, name)
    return KeyState(key, at(offset), decode(json.dumps({"at": offset}).encode()), EVERYONE, commit_ns=commit_ns)


async def greeted(socket: OneSocket) -> StreamClient:
    client = StreamClient(socket)  # type: ignore[arg-type]  # as far as it is used
    assert (await client.next())["hello"]["ping_s"] == 20
    return client


async def begun(socket: OneSocket, **watch: Any) -> StreamClient:
    """Returns a client with the watch 1 of a range that has one row as of offset 5."""
    client = await greeted(socket)
    await client.say(watch=[{"id": 1, **BOARD, **watch}])
    await socket.answered(whole(board("a", 1, COMMIT_NS), through=5))
    await client.until_current(1)
    return client


async def next_ping(socket: OneSocket, client: StreamClient) -> dict[str, Any]:
    """Lets time pass until there is a ping; returns its content."""
    while not socket.unread:
        await socket.passes(1)
    ping: dict[str, Any] = (await client.next())["ping"]
    return ping


def position_of(token: str) -> Resumption | None:
    return resumption_of(mask_of(Question(BOARDS, "g", limit=10), (), ALICE), token)


@pytest.mark.parametrize("binary", [False, True])
async def test_a_socket_is_pinged_after_twenty_seconds_of_its_own_silence(binary: bool) -> None:
    async with OneSocket(binary=binary) as socket:
        client = await greeted(socket)
        unread = []
        for seconds in (19, 1, 19, 1):
            await socket.passes(seconds)
            unread.append(socket.unread)
        frames = [await client.next() for _ in "12"]

    assert unread == [0, 1, 1, 2]
    assert frames == [{"ping": {}}] * 2


async def test_a_frame_puts_the_ping_off_and_the_clients_own_frames_do_not() -> None:
    async with OneSocket(BOARDS) as socket:
        client = await greeted(socket)
        await socket.passes(15)
        await client.say(watch=[{"id": 1, **BOARD}])
        await socket.answered(whole(through=5))
        await client.until_current(1)
        await socket.passes(15)
        await client.say(unwatch=[])
        quiet = socket.unread
        await socket.passes(5)

        assert (quiet, socket.unread) == (0, 1)


@pytest.mark.parametrize("binary", [False, True])
async def test_once_a_minute_a_ping_has_the_tokens_of_quiet_places_that_have_moved(binary: bool) -> None:
    async with OneSocket(BOARDS, binary=binary) as socket:
        client = await begun(socket)
        pings = list[dict[str, Any]]()
        for offset in range(6, 16):
            while not socket.unread:
                await socket.passes(1)
                for watch in socket.hub.take_due():
                    socket.hub.unchanged(watch, Progress(at(offset)))
            pings.append((await client.next())["ping"])

    tokens = [[each["token"] for each in ping.get("bookmarks", ())] for ping in pings]
    positions = [position_of(token) for each in tokens for token in each]
    assert [len(each) for each in tokens] == [0, 0, 1, 0, 0, 1, 0, 0, 1, 0]
    assert positions == [Resumption(at(offset)) for offset in (8, 11, 14)]


async def test_bookmarks_that_fit_into_no_frame_come_in_several_pings() -> None:
    names = [f"{number:03}" + "\1" * 1000 for number in range(50)]
    async with OneSocket(BOARDS, max_sent_frame_bytes=131_072) as socket:
        client = await greeted(socket)
        steps = [{"store": "boards", "group_field": "next", "limit": 1}]
        await client.say(watch=[{"id": 1, **BOARD, "limit": 50, "steps": steps}])
        leading = decode(b'{"next": "h"}')
        rows = (KeyState(StoreKey("boards", "g", name, name), at(5), leading, EVERYONE) for name in names)
        await socket.answered(whole(*rows, through=5))
        await socket.answered(whole(through=5))
        await client.until_current(1)
        await socket.passes(1)
        for watch in socket.hub.take_due():
            socket.hub.unchanged(watch, Progress(at(9)))
        await socket.passes(59)
        contents = [str(await socket.recv()) for _ in range(socket.unread)]

    bookmarks = [each for content in contents for each in json.loads(content)["ping"].get("bookmarks", ())]
    assert sorted(each.get("path", [""])[0] for each in bookmarks) == ["", *names]
    assert max(map(len, contents)) <= 131_072


@given(st.integers(1, 2**32 - 1), st.lists(st.text(max_size=20), max_size=5), st.sampled_from(["", "t" * 15, "t" * 40]))
@example(2**32 - 1, ["\1" * 1000] * 4, "t" * 15)
def test_no_bookmark_takes_more_than_is_counted_for_it(number: int, path: list[str], token: str) -> None:
    bookmark = Bookmark(id=number, path=path, token=token)

    assert len(json_bytes(message_document(bookmark, has_defaults=False))) <= max_size(bookmark)


async def test_a_place_with_rows_that_wait_has_no_bookmark() -> None:
    async with OneSocket(BOARDS) as socket:
        client = await begun(socket, interval_ms=100)
        await socket.passes(60)
        while socket.unread:
            await client.next()
        socket.reads.clear()
        await client.say(ping={})
        await socket.answered(RangeResult(at(5), at(9), False, False, [board("a", 9)], [], True))
        await socket.passes(60)
        await client.say(ping={})
        socket.reads.set()
        await settle()
        frames = [await client.next() for _ in range(socket.unread)]

    pings = [frame["ping"] for frame in frames if "ping" in frame]
    assert len(pings) == 2
    assert not any("bookmarks" in ping for ping in pings)
    assert client.rows[1, ""]["a"] == {"at": 9}


@pytest.mark.parametrize("binary", [False, True])
async def test_each_ping_names_the_watches_that_nobody_answers_for(binary: bool) -> None:
    async with OneSocket(BOARDS, SCORES, binary=binary) as socket:
        client = await greeted(socket)
        began = socket.clock.now
        await client.say(watch=[{"id": 1, **BOARD}, {"id": 2, "store": "scores", "group": "g"}])
        first = await next_ping(socket, client)
        first_s = socket.clock.now - began
        second = await next_ping(socket, client)
        watches = socket.hub.take_due()
        socket.hub.answered(watches[0], whole(through=5))
        one_sees = await client.next()
        third = await next_ping(socket, client)
        socket.hub.answered(watches[1], whole(through=5))
        other_sees = await client.next()
        last = await next_ping(socket, client)

    assert first == {"blind": [{"ids": [1, 2], "lag_s": first_s}]}
    assert first_s <= 5
    assert second == {"blind": [{"ids": [1, 2], "lag_s": first_s + 20}]}
    assert [(each["id"], each["current"]) for each in (one_sees, other_sees)] == [(1, True), (2, True)]
    assert [each["ids"] for each in third["blind"]] == [[2]]
    assert last == {}


async def test_a_replica_that_lags_makes_its_watches_blind_for_so_long() -> None:
    async with OneSocket(BOARDS) as socket:
        client = await greeted(socket)
        await client.say(watch=[{"id": 1, **BOARD}])
        await socket.answered(RangeResult(None, at(5), True, False, [], [], False, lag_ms=12_000))
        await client.until_current(1)

        assert await next_ping(socket, client) == {"blind": [{"ids": [1], "lag_s": 12}]}


@pytest.mark.parametrize("binary", [False, True])
async def test_rows_have_the_time_of_their_change_where_it_is_asked_for(binary: bool) -> None:
    rows = []
    for times in (False, True):
        async with OneSocket(BOARDS, binary=binary) as socket:
            client = await begun(socket, times=times)
            rows += client.frames[-1]["rows"]

    assert "commit_time" not in rows[0]
    assert rows[1]["commit_time"] == "2025-11-27T07:20:05.123456Z"


@pytest.mark.parametrize("binary", [False, True])
async def test_an_access_is_renewed_by_a_ticket_and_by_no_forged_one(binary: bool) -> None:
    async with OneSocket(binary=binary, max_access_s=100) as socket:
        client = await greeted(socket)
        await client.say(renew={"ticket": socket.tickets.issue(socket.caller)})
        access = (await client.next())["access"]
        await client.say(renew={"ticket": "forged"})
        refused = (await client.next())["error"]
        socket.wall_clock.now += 101
        await client.say(renew={"ticket": socket.tickets.issue(socket.caller)})
        renewed = (await client.next())["access"]

    assert 80 <= client.frames[0]["hello"]["expires_in_s"] <= 100
    assert 80 <= access["expires_in_s"] <= 100
    assert 80 <= renewed["expires_in_s"] <= 100
    assert (refused["code"], refused["retry_ms"]) == ("ticket_refused", 1000)


async def test_pings_that_a_client_asks_for_look_at_its_watches_once_a_second() -> None:
    async with OneSocket(BOARDS) as socket:
        client = await begun(socket)
        with patch("ws_edge.session.pings._lags", return_value={1: 4.0}) as looks:
            for _ in range(3):
                await client.say(ping={})
            at_once = looks.call_count
            await socket.passes(1)
            await client.say(ping={})
        pings = [(await client.next())["ping"] for _ in range(4)]

    assert (at_once, looks.call_count) == (1, 2)
    assert pings == [{"blind": [{"ids": [1], "lag_s": 4}]}] * 4
