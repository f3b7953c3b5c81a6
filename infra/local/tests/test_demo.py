"""The demo: following orders through a gateway, printing lines, and ending at a key."""

import asyncio
import io
import json
import os
import pty
import shlex
import ssl
import termios
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from rich.console import Console
from websockets.asyncio.server import ServerConnection, serve
from websockets.http11 import Request, Response

from local_stack.demo import key_pressed, print_lines, sql_hint
from local_stack.demo_board import Board, Line
from local_stack.demo_lines import ORDERS, ROWS
from local_stack.demo_watches import following, newest_groups
from local_stack.settings import Settings
from local_stack.stack_file import Basic, Credentials, Stack, stack_text
from statecast_client.push.protocol import SUBPROTOCOL
from testkit.certificates import Certificates
from testkit.topics import create_topic
from testkit.waiting import wait_until_async

ALICE = Credentials(customer_id="customer-0001", basic=Basic(username="alice", password="secret"), key="alice-key")
OPERATOR = Credentials(groups=("staff",), basic=Basic(username="operator", password="secret"), key="operator-key")
NOW = 1_800_000_000.0


class FakeGateway:
    """A TLS server that answers GETs from `pages`, and each watch with the changes of one order."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.certificates = Certificates(directory / "tls")
        self.pages: dict[str, object] = {}
        self.statuses = ["PLACED"]
        self.refusal = ""
        self.watched: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.sockets: set[ServerConnection] = set()

    @asynccontextmanager
    async def running(self, **users: Credentials) -> AsyncIterator[Stack]:
        """Serves for the length of the block, as the gateway of the stack that it yields."""
        self.certificates.directory.mkdir()
        self.certificates.ensure(datetime.now(UTC))
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self.certificates.certificate, self.certificates.key)
        handshake = partial(serve, process_request=self._respond, subprotocols=[SUBPROTOCOL])
        async with handshake(self._serve, "127.0.0.1", 0, ssl=tls) as server:
            port = server.sockets[0].getsockname()[1]
            settings = Settings(gateway_https_port=port, directory=self.directory)
            yield Stack.model_validate_json(stack_text(settings, users, {}))

    def _respond(self, connection: ServerConnection, request: Request) -> Response | None:
        self.keys.add(request.headers.get("apikey"))
        if "Upgrade" in request.headers:
            return None
        page = self.pages.get(request.path)
        return connection.respond(HTTPStatus.OK if page else HTTPStatus.NOT_FOUND, json.dumps(page))

    async def _serve(self, socket: ServerConnection) -> None:
        self.sockets.add(socket)
        await socket.send('{"hello":{"protocol":2}}')
        async for text in socket:
            for watch in json.loads(text)["watch"]:
                self.watched.append(watch)
                await self._answer(socket, watch)
        self.sockets.discard(socket)

    async def _answer(self, socket: ServerConnection, watch: dict[str, Any]) -> None:
        if self.refusal:
            ended = {"code": "forbidden", "message": self.refusal}
            await socket.send(json.dumps({"id": watch["id"], "ended": ended}))
            return
        for offset, status in enumerate(self.statuses):
            begins = {} if offset else {"watching": {"key_field": "order_id"}, "current": True}
            row = {"row": order(status), "commit_time": datetime.fromtimestamp(NOW + offset, UTC).isoformat()}
            await socket.send(json.dumps({"id": watch["id"], "rows": [row], "token": f"t{offset}"} | begins))
            await asyncio.sleep(0.2)


def order(status: str) -> dict[str, str]:
    """Returns an order, as its store's rows have it."""
    texts = dict.fromkeys(("estimated_delivery", "tracking_number"), "")
    return {"order_id": "order-1", "customer_id": "customer-0001", "status": f"ORDER_STATUS_{status}"} | texts


@pytest.fixture
def gateway(tmp_path: Path) -> FakeGateway:
    return FakeGateway(tmp_path)


async def test_orders_of_a_customer_are_watched_and_shown(gateway: FakeGateway) -> None:
    gateway.statuses = ["PLACED", "PAID"]
    board = Board(ORDERS)

    async with gateway.running(alice=ALICE) as stack, following(stack, board, lambda: NOW + 2):
        await wait_until_async(lambda: board.updates, "an update comes")

    line = board.lines["order-1"]
    assert (line.brief, line.cells[1], line.seen_by) == ("order-1 Paid", "customer-0001", "alice")
    assert (line.changes, line.age_s) == (1, 1.0)
    assert gateway.keys == {"alice-key"}


async def test_a_lost_socket_continues_from_its_token(gateway: FakeGateway) -> None:
    board = Board(ORDERS)

    async with gateway.running(alice=ALICE) as stack, following(stack, board, lambda: NOW):
        await wait_until_async(lambda: board.lines, "a snapshot comes")
        for socket in list(gateway.sockets):
            await socket.close(1012)
        await wait_until_async(lambda: len(gateway.watched) == 2, "it asks again")

    assert [watch.get("token") for watch in gateway.watched] == [None, "t0"]


async def test_a_refusal_is_shown_as_a_problem(gateway: FakeGateway) -> None:
    gateway.refusal = "not yours"
    board = Board(ORDERS)

    async with gateway.running(alice=ALICE) as stack, following(stack, board, lambda: NOW):
        await wait_until_async(lambda: board.problem, "the problem is shown")

    assert "alice: " in board.problem
    assert "not yours" in board.problem


async def test_an_authority_that_is_not_the_stacks_is_not_trusted(gateway: FakeGateway, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Certificates(tmp_path / "other")
    other.ensure(datetime.now(UTC))
    board = Board(ORDERS)

    async with gateway.running(operator=OPERATOR) as stack:
        elsewhere = stack.gateway.model_copy(update={"ca_certificate": other.authority})
        async with following(stack.model_copy(update={"gateway": elsewhere}), board, lambda: NOW):
            await wait_until_async(lambda: "CERTIFICATE_VERIFY_FAILED" in board.problem, "the certificate is refused")

    assert not gateway.keys


async def test_the_shard_map_is_followed_as_staff(gateway: FakeGateway) -> None:
    board = Board(ORDERS)
    gateway.pages["/v1/shards"] = {"shards": [{"store": "orders-by-key", "partition": 1, "replicas": []}]}

    async with gateway.running(operator=OPERATOR) as stack, following(stack, board, lambda: NOW):
        await wait_until_async(lambda: board.shards, "the shard map is read")

    assert board.shards[0].partition == 1


async def test_staff_watch_groups_of_every_store(gateway: FakeGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [{"store": name} for name in ("odds-by-match", "bookings-by-customer")]
    gateway.pages["/v1/stores"] = {"stores": listed}
    monkeypatch.setattr("local_stack.demo_watches.newest_groups", lambda _, store: [f"group of {store}"])
    board = Board(ROWS)

    async with gateway.running(alice=ALICE, operator=OPERATOR) as stack, following(stack, board, lambda: NOW):
        await wait_until_async(lambda: len(board.lines) == 2, "both stores are shown")

    asked = {(each["store"], each["group"]) for each in gateway.watched}
    assert asked == {(each["store"], f"group of {each['store']}") for each in listed}
    assert {line.seen_by for line in board.lines.values()} == {"operator"}
    assert gateway.keys == {"operator-key"}


@pytest.mark.kafka
def test_the_groups_of_a_store_are_those_that_changed_last(kafka: str) -> None:
    topic = f"store-{uuid4().hex[:8]}"
    create_topic(kafka, topic, partitions=1)
    producer = Producer({"bootstrap.servers": kafka})
    for number, key in enumerate((b"a", b"b\0001\0x", b"a", b"c", b"d")):
        producer.produce(topic, None if key == b"c" else b"row", key, timestamp=1_000 + number)
    producer.flush()

    assert newest_groups(kafka, topic) == ["d", "a", "b"]
    assert newest_groups(kafka, f"{topic}-missing") == []


async def test_another_status_than_2xx_is_shown_as_a_problem(gateway: FakeGateway) -> None:
    board = Board(ORDERS)

    async with gateway.running(operator=OPERATOR) as stack, following(stack, board, lambda: NOW):
        await wait_until_async(lambda: "404" in board.problem, "the problem is shown")

    assert board.problem.startswith("shards: ")


def apply(board: Board, now: float) -> None:
    board.apply(Line("order-1", ("order-1",), "order-1", "alice", now - 0.05), now)


class Clock:
    """Time passes only by sleeping; from `first` on, each second brings an update."""

    def __init__(self, board: Board, first: float | None = None) -> None:
        self.now = NOW
        self.board = board
        self.first = first
        apply(board, NOW - 1)

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.first is not None and self.now >= self.first:
            apply(self.board, self.now - 0.1)


async def test_it_fails_when_no_update_came() -> None:
    board, console = Board(ORDERS, problem="alice: refused"), Console()
    clock = Clock(board)
    with console.capture() as capture:
        await print_lines(board, 30, console, clock, clock.sleep)

    assert board.updates == 0
    assert "no update came within 30 s. alice: refused" in capture.get()


async def test_it_shows_updates_for_its_time_from_the_first_on() -> None:
    board, console = Board(ORDERS), Console(width=200)
    clock = Clock(board, first=NOW + 20)
    with console.capture() as capture:
        await print_lines(board, 30, console, clock, clock.sleep)

    assert clock.now == NOW + 50
    assert "31 updates; commit to client: median 50 ms" in capture.get()


async def test_any_key_sets_the_event_and_the_terminal_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    with os.fdopen(keyboard, "wb", buffering=0) as keys, os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with key_pressed() as pressed:
            was_set = pressed.is_set()
            keys.write(b"x")
            async with asyncio.timeout(30):
                await pressed.wait()

        assert not was_set
        assert termios.tcgetattr(terminal) == before


async def test_without_a_terminal_no_key_is_pressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x"))

    with key_pressed() as pressed:
        assert not pressed.is_set()


@pytest.mark.parametrize("psql", ["/usr/bin/psql", None])
def test_the_line_for_a_shell_changes_an_order(monkeypatch: pytest.MonkeyPatch, psql: str | None) -> None:
    monkeypatch.setattr("shutil.which", lambda _: psql)
    _, line = sql_hint("postgresql://user:secret@127.0.0.1:1/statecast").splitlines()

    program, *arguments = shlex.split(line)
    assert Path(program).name == ("psql" if psql else "python")
    assert arguments[-1].startswith("UPDATE orders SET status = 'cancelled'")
    assert "postgresql://user:secret@127.0.0.1:1/statecast" in arguments
