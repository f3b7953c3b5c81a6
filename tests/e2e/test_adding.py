"""The steps of docs/start/kafka-topic.md work on a running system, and readers and watchers do not notice."""

import json
import os
import re
import sys
from pathlib import Path

import httpx
import pytest
from drivers.gateway_client import GatewayClient, client_of, gateway_of
from drivers.order_source import OrderSource
from drivers.order_watchers import OrderWatchers
from drivers.pages import TIMEOUT_MS, browser_at
from drivers.rest_reader import RestReader
from playwright.async_api import expect

from local_stack.running_stack import RunningStack
from testkit.background import in_background
from testkit.tutorial import DONE, run_script, script_of, seconds_of
from testkit.waiting import wait_until

PAGE = Path(__file__).parents[2] / "docs" / "start" / "kafka-topic.md"


@pytest.fixture(scope="module")
def added(stack: RunningStack, source: OrderSource, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of the page's commands."""
    order_id = source.place("customer-0001", {"item-a": 1}).order_id
    before = _pids(stack)
    alice = client_of(stack, "alice")
    wait_until(lambda: alice.get(f"/update/orders/{order_id}").status_code == httpx.codes.OK, "the order is known")
    with OrderWatchers(gateway_of(stack), alice, [order_id]) as watchers:
        wait_until(lambda: watchers.frames, "the socket shows the order")
        reader = RestReader(alice, order_id)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "STACK": str(stack.directory.root)}
        with in_background(reader.read_until):
            said = run_script(script_of(PAGE), tmp_path_factory.mktemp("page"), environment)
            reader.read_more()
        assert said.endswith(f"{DONE}\n"), said

    wait_until(lambda: all(_is_shown(alice) for _ in stack.file.edges), "each edge knows the store")
    assert _pids(stack) == before, "nothing is started anew"
    assert watchers.connects == 1, "no socket breaks"
    assert reader.failures == []
    return said


def _is_shown(reader: GatewayClient) -> bool:
    return reader.rows("parcels-by-town", "Ghent").status_code == httpx.codes.OK


def _pids(stack: RunningStack) -> dict[str, int | None]:
    return {name: entry.pid for name, entry in stack.directory.ledger().processes.items()}


@pytest.mark.timeout(600)
def test_a_topic_of_json_becomes_a_store_and_groups_by_the_page_alone(added: str, alice: GatewayClient) -> None:
    sys.stdout.write(f"seconds by step: {seconds_of(added)}\n")
    parcel = alice.rows("parcels", "parcel-1").json()
    town = alice.rows("parcels-by-town", "Ghent").json()

    assert parcel["rows"] == [{"row": {"id": "parcel-1", "town": "Bruges", "state": "delivered"}}]
    assert [row["key"] for row in town["rows"]] == ["parcel-2"]


@pytest.mark.timeout(600)
def test_a_socket_is_told_of_a_row_of_the_topic_as_it_is(added: str) -> None:
    watched = re.search(r"^parcel-1  (\{.*\})$", added, re.MULTILINE)

    assert watched is not None, added
    assert json.loads(watched[1]) == {"id": "parcel-1", "town": "Ghent", "state": "on its way"}


@pytest.mark.usefixtures("added")
@pytest.mark.timeout(600)
async def test_the_page_of_staff_shows_the_new_store(stack: RunningStack) -> None:
    async with browser_at(gateway_of(stack).https) as visits:
        operator = await visits.person()
        await operator.sign_in("/#stores/parcels-by-town", "API key", "operator-demo-key")

        await expect(operator.page.get_by_role("link", name="Bruges")).to_be_visible(timeout=TIMEOUT_MS)
        assert operator.complaints == []
