"""The command `statecast` on a real instance."""

import asyncio
import json
import os
import sys
from typing import Any, NamedTuple

import pytest

from statecast.orders.v1 import order_pb2
from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 6)]
MEMBERS = [f"customer-1\x00{sort}\x00{group}" for sort, group in zip(("10", "11", "20"), GROUPS, strict=False)]


class Ended(NamedTuple):
    """How the command ended."""

    status: int | None
    out: str
    err: str

    @property
    def documents(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


class Shell:
    """Runs the command against one instance."""

    def __init__(self, instance: Process) -> None:
        self.instance = instance

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            *("-m", "statecast_client", *arguments),
            env={**os.environ, "STATECAST_ADDRESS": self.instance.address},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *arguments: str) -> Ended:
        process = await self.start(*arguments)
        out, err = await asyncio.wait_for(process.communicate(), 60)
        return Ended(process.returncode, out.decode(), err.decode())


@pytest.fixture
async def shell(scene: Scene) -> Shell:
    one = scene.launch("query-1")
    rows = {key: order_pb2.Order(order_id=key.split("\0")[-1]).SerializeToString() for key in (*GROUPS, *MEMBERS)}
    scene.write(dict(rows))
    scene.write({"order-000005": None}, sequence=2)
    await scene.until_applied(one, len(rows) + 1)
    return Shell(one)


async def test_get_shows_a_value_or_says_that_there_is_none(shell: Shell) -> None:
    text = await shell.run("get", "rows", "order-000001")
    one = await shell.run("get", "rows", "order-000001", "--json")
    member = await shell.run("get", "rows", "customer-1|10|order-000001", "--separator", "|", "--json")
    deleted = await shell.run("get", "rows", "order-000005", "--json")
    never = await shell.run("get", "rows", "nobody")

    assert text.status == 0
    assert text.out.startswith("order-000001  @")
    assert '"order_id": "order-000001"' in text.out
    assert one.documents[0]["value"]["order_id"] == "order-000001"
    assert one.documents[0]["freshness"]["answered_by"] == "query-1"
    assert member.documents[0]["key"] == {"group": "customer-1", "sort": "10", "member": "order-000001"}
    assert (deleted.status, deleted.documents[0]["absence"]["deleted"]) == (1, True)
    assert (never.status, never.out) == (1, "")
    assert never.err == "statecast: key: `nobody` has no value in `rows`\n"


async def test_what_is_wrong_is_said_in_one_line_with_its_status(shell: Shell) -> None:
    store = await shell.run("get", "rosw", "a")
    key = await shell.run("get", "rows", "a/b")
    file = await shell.run("get", "rows", "a", "--tls-ca", "/nowhere/ca.pem")
    nobody = await shell.run("shards", "--address", "127.0.0.1:1", "--timeout", "1")

    assert [ended.status for ended in (store, key, file, nobody)] == [2, 2, 2, 3]
    assert "did you mean rows?" in store.err
    assert "KEY `a/b` has 2 parts" in key.err
    assert "/nowhere/ca.pem cannot be read" in file.err
    assert "127.0.0.1:1 does not answer" in nobody.err
    assert all(len(ended.err.splitlines()) == 1 for ended in (store, key, file, nobody))


async def test_scan_shows_groups_parts_of_them_and_the_whole_store(shell: Shell) -> None:
    members = await shell.run("scan", "rows", "customer-1", "--prefix", "1", "--reverse")
    part = await shell.run("scan", "rows", "customer-1", "--from", "11", "--to", "20", "--json")
    whole = await shell.run("scan", "rows", "--json")
    own = await shell.run("scan", "rows", "--local-only", "--json")
    first = await shell.run("scan", "rows", "--limit", "2", "--json")

    assert [line.split("  ")[0] for line in members.out.splitlines()] == [
        "customer-1/11/order-000002",
        "customer-1/10/order-000001",
    ]
    assert [each["key"]["sort"] for each in part.documents] == ["11"]
    assert [each["key"]["group"] for each in whole.documents] == ["customer-1"] * 3 + GROUPS[:4]
    assert own.documents == whole.documents
    assert first.documents == whole.documents[:2]


async def test_shards_shows_who_serves_what(shell: Shell) -> None:
    table = (await shell.run("shards", "rows")).out.splitlines()
    documents = (await shell.run("shards", "--json")).documents

    assert table[0].split() == ["STORE", "PARTITION", "RANK", "INSTANCE", "ADDRESS", "SERVING", "LAG_RECORDS", "LAG_MS"]
    assert [line.split()[:6] for line in table[1:]] == [
        ["rows", str(partition), "1", "query-1", shell.instance.address, "yes"] for partition in range(4)
    ]
    assert documents[0]["partitions"] == 4
    assert [each["partition"] for each in documents[1:]] == [0, 1, 2, 3]


async def test_watch_shows_a_key_and_its_changes(shell: Shell, scene: Scene) -> None:
    watching = await shell.start("watch", "rows", "order-000001", "--limit", "2", "--json")
    assert watching.stdout is not None
    first = json.loads(await asyncio.wait_for(watching.stdout.readline(), 60))
    scene.write({"order-000001": None}, sequence=2)
    second = json.loads(await asyncio.wait_for(watching.stdout.readline(), 60))

    assert first["value"]["order_id"] == "order-000001"
    assert second["absence"]["deleted"]
    assert await asyncio.wait_for(watching.wait(), 60) == 0
