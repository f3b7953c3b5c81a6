"""The real stack: it survives its supervisor's death without a trace, goes on where it stopped, and shows itself."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from local_stack.stack_directory import RUN_VARIABLE
from statecast_client.tokens import position_in
from testkit.waiting import scaled, wait_until

EPOCH_CHARACTERS = 10
"""The first ones of a token, which the epoch of the topic makes alone."""


def of_the_run(run: str) -> list[str]:
    names = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(RUN_VARIABLE) == run and process.status() != psutil.STATUS_ZOMBIE:
                names.append(process.name())
        except psutil.Error:
            continue
    return names


def orders(stack: RunningStack) -> Mapping[str, Any]:
    """Returns the page of all orders of customer-0001, with its token, as the operator sees it through the gateway."""
    file = stack.file
    with httpx.Client(base_url=file.gateway.http, headers=file.credentials["operator"].headers) as client:
        answer = client.get("/v1/stores/orders-by-customer/rows", params={"group": "customer-0001", "limit": 1000})
    page: Mapping[str, Any] = answer.raise_for_status().json()
    return page


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.long
@pytest.mark.timeout(600)
def test_it_leaves_nothing_goes_on_where_it_stopped_and_shows_itself(tmp_path: Path) -> None:
    settings = Settings(
        directory=tmp_path / "stack", orders=50, customers=5, rate=20, start_timeout_s=scaled(180), demo_lines_s=15
    )
    with running_stack(settings) as stack:
        wait_until(lambda: orders(stack)["rows"], "customer-0001 has an order")
        before = orders(stack)
        ledger = stack.directory.ledger()
        os.kill(ledger.supervisor, signal.SIGKILL)
        wait_until(lambda: not of_the_run(ledger.run), "every process has ended, Spark's JVM too")

    with running_stack(settings) as stack:
        wait_until(lambda: is_later(orders(stack), before), "customer-0001 changes an order")
        demo = subprocess.run(
            [sys.executable, "-m", "local_stack", "demo"],
            env={**os.environ, **settings.as_environment()},
            capture_output=True,
            text=True,
            check=False,
        )

        assert demo.returncode == 0, demo.stdout + demo.stderr
        assert "updates; commit to client: median" in demo.stdout
        assert stack.file.processes["gateway"].pid is not None


def is_later(page: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Returns whether an order has changed since, in the same log: a topic created again would have another epoch."""
    (offset, newest), (earlier, older) = (
        (position_in(each["token"])[0], max(row["sort"] for row in each["rows"])) for each in (page, before)
    )
    assert page["token"][:EPOCH_CHARACTERS] == before["token"][:EPOCH_CHARACTERS]
    return offset > earlier and newest > older
