"""The live client against a server that is scripted frame by frame."""

import asyncio
import json
import secrets

import pytest

from statecast_client.push import PushClient, PushError, Watch
from testkit.push_server import GROUP, STORE, Peer, server
from testkit.waiting import scaled


async def next_offset(watch: Watch) -> int:
    async with asyncio.timeout(scaled(30)):
        return int((await anext(watch)).token)


async def until_token(watch: Watch, token: str) -> None:
    async with asyncio.timeout(scaled(30)):
        while watch.token != token:  # noqa: ASYNC110  nothing is read
            await asyncio.sleep(0.01)


async def test_watches_of_one_turn_leave_in_few_frames_while_it_reads() -> None:
    groups = [secrets.token_hex(4_000) for _ in range(3_000)]  # random, for sockets compress
    asked: list[str] = []
    frames: list[int] = []
    all_asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        # No request is read before the answers to those before it, which are as large, have been taken.
        while len(asked) < len(groups):
            watches = (await peer.next_frame())["watch"]
            asked.extend(each["group"] for each in watches)
            frames.append(len(watches))
            if len(frames) == 1:
                for group in groups:
                    await peer.say(warning={"code": "noise", "message": group})
        all_asked.set()
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client, asyncio.timeout(scaled(60)):
        for group in groups:
            client.watch(STORE, group)
        await all_asked.wait()

    assert asked == groups
    assert set(frames[:-1]) == {8}, "as many as 64 KiB hold"


async def test_no_frame_is_larger_than_hello_says() -> None:
    frames: list[dict[str, list[object]]] = []
    all_asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        for _ in range(3):
            await (await peer.socket.ping())  # time enough to send
        await peer.say(hello={"max_request_bytes": 128})
        while sum(len(frame["watch"]) for frame in frames) < 9:
            frames.append(await peer.next_frame())
        all_asked.set()
        await peer.socket.wait_closed()

    async with server(script, greets=False) as address, PushClient(address) as client:
        for number in range(9):
            client.watch(STORE, f"order-{number}")
        async with asyncio.timeout(scaled(30)):
            await all_asked.wait()

    assert max(len(json.dumps(frame, separators=(",", ":"))) for frame in frames) <= 128


async def test_a_slow_reader_gets_the_newest_and_the_number_that_it_replaces() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        for offset in (1, 2):
            await peer.change(offset, skipped=2)
        await peer.say(id=99, rows=[{"row": {}}], token="of no watch")
        await peer.say(unheard_of={})
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        watch = client.watch(STORE, GROUP)
        await until_token(watch, "2")
        change = await anext(watch)

    assert (change.token, change.rows[""].value["offset"], change.rows[""].skipped) == ("2", 2, 2 + 1 + 2)


async def test_changes_of_a_row_that_is_not_there_begin_the_watch_anew() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        await peer.change(1)
        await peer.say(id=1, rows=[{"key": "another", "delta": {"offset": 2}}], token="2")
        frame = await peer.next_frame()
        assert (frame["unwatch"], frame["watch"][0]["id"], "token" in frame["watch"][0]) == ([1], 2, False)
        await peer.say(id=2, watching={})
        await peer.change(3, number=2)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        watch = client.watch(STORE, GROUP)
        await until_token(watch, "3")

        assert (watch.rows[""].value["offset"], watch.resumed) == (3, False)


async def test_frames_of_a_watch_that_was_ended_do_not_reach_the_next() -> None:
    async def script(peer: Peer) -> None:
        await peer.admitted()
        await peer.change(1)
        frame = await peer.next_frame()
        assert (frame["unwatch"], frame["watch"][0]["id"]) == ([1], 2)
        await peer.change(2)
        await peer.say(id=1, ended={})
        await peer.change(3, number=2)
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        first = client.watch(STORE, GROUP)
        assert await next_offset(first) == 1
        first.unwatch()
        second = client.watch(STORE, GROUP)
        first.unwatch()

        assert await next_offset(second) == 3
        with pytest.raises(StopAsyncIteration):
            await anext(first)


async def test_a_watch_resumes_from_what_was_saved() -> None:
    async def first(peer: Peer) -> None:
        await peer.admitted()
        await peer.change(1)
        await peer.socket.wait_closed()

    async def second(peer: Peer) -> None:
        watch = await peer.admitted()
        assert (watch["token"], watch["delta"]) == ("1", True)
        await peer.say(id=1, rows=[{"delta": {"offset": 2}}], token="2")
        bare = await peer.admitted()
        assert (bare["token"], "delta" in bare) == ("1", False)
        await peer.change(3, number=2)
        await peer.socket.wait_closed()

    async with server(first, second) as address:
        async with PushClient(address) as client:
            watch = client.watch(STORE, GROUP)
            await next_offset(watch)
            saved = watch.saved()
        async with PushClient(address) as client:
            watch = client.watch(STORE, GROUP, resume=saved)
            assert watch.rows[""].value["offset"] == 1
            assert await next_offset(watch) == 2
            assert watch.rows[""].value == {"order_id": GROUP, "offset": 2}
            assert await next_offset(client.watch(STORE, GROUP, resume={"token": "1"})) == 3


async def test_a_watch_that_the_edge_ends_for_a_while_is_asked_for_after_it_on_a_new_socket() -> None:
    asked, is_asked = list[list[str]](), asyncio.Event()

    async def refuse(peer: Peer) -> None:
        asked.append([each["group"] for each in (await peer.next_frame())["watch"]])
        await peer.say(id=1, ended={"code": "store_changed", "retry_ms": 2000})

    async def take(peer: Peer) -> None:
        for _ in range(2):
            asked.append([each["group"] for each in (await peer.next_frame())["watch"]])
        is_asked.set()
        await peer.socket.wait_closed()

    async with server(refuse, take) as address, PushClient(address) as client, asyncio.timeout(scaled(30)):
        for group in ("g", "other"):
            client.watch(STORE, group)
        await is_asked.wait()

    assert asked == [["g", "other"], ["other"], ["g"]]


async def test_the_newest_ping_says_how_far_a_watch_is_behind() -> None:
    async def script(peer: Peer) -> None:
        await peer.next_frame()
        await peer.say(ping={"blind": [{"ids": [1], "lag_s": 12}]})
        await peer.change(1)
        await peer.next_frame()
        await peer.say(ping={})
        await peer.change(2)
        await peer.next_frame()

    async with server(script) as address, PushClient(address) as client:
        blind, seeing = client.watch(STORE, GROUP), client.watch(STORE, "another")
        assert await next_offset(blind) == 1
        assert (blind.stale, seeing.stale) == (12, None)
        client.watch(STORE, "third")
        assert await next_offset(blind) == 2
        assert blind.stale is None
        client.watch(STORE, "fourth")
        async with asyncio.timeout(scaled(30)):
            while blind.stale is None:  # noqa: ASYNC110  the line ends
                await asyncio.sleep(0.01)


async def test_it_must_be_entered_and_ends_its_watches() -> None:
    async def script(peer: Peer) -> None:
        await peer.socket.wait_closed()

    client = PushClient("ws://127.0.0.1:1")
    with pytest.raises(PushError, match="not open"):
        client.watch(STORE, GROUP)
    with pytest.raises(PushError, match="not open"):
        await client.opened()
    with pytest.raises(PushError, match="`gateway:8080` is not the address"):
        PushClient("gateway:8080")
    async with server(script) as address, PushClient(address) as client:
        watch = client.watch(STORE, GROUP)
        with pytest.raises(PushError, match="`resume` is neither"):
            client.watch(STORE, GROUP, resume={"rows": []})
    with pytest.raises(StopAsyncIteration):
        await anext(watch)
    with pytest.raises(PushError, match="closed"):
        client.watch(STORE, GROUP)


async def test_what_was_saved_before_the_first_rows_begins_with_all_rows() -> None:
    async def script(peer: Peer) -> None:
        requests = (await peer.next_frame())["watch"]
        for request in requests:
            await peer.say(id=request["id"], watching={})
            await peer.change(1, number=request["id"])
        assert [(each.get("token"), each["delta"]) for each in requests] == [(None, True)] * 2
        await peer.socket.wait_closed()

    async with server(script) as address, PushClient(address) as client:
        watch = client.watch(STORE, GROUP)

        assert await next_offset(client.watch(STORE, GROUP, resume=watch.saved())) == 1
