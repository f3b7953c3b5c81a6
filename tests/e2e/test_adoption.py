"""A new team's way from an empty directory to a live page, by the documentation alone.

The test runs every command of docs/start/own-kafka.md unchanged, on tables with keys of uuid and of several columns.
Kafka uses SASL_SSL, does not create topics automatically, and gives its user rights only to names with its prefix.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from drivers.pages import browser_at
from playwright.async_api import expect

from testkit.ports import free_ports
from testkit.postgres import PostgresProcess, execute, running_postgres
from testkit.secured_broker import SecuredBroker, secured_broker
from testkit.tutorial import DONE, LOG, TIMEOUT_S, run_script, script_of, seconds_of
from testkit.waiting import scaled, wait_until

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "start" / "own-kafka.md"
USER, PREFIX, DATABASE, PASSWORD = "acme", "acme.", "hotels", "password-of-the-database"
ACCOUNT = "11111111-1111-1111-1111-111111111111"
KAFKAS_OWN = re.compile(r"__\w+")
HOLD = "until [ -e leave ]; do sleep 0.2; done"
"""The end of the script, so that tests can look at the programs that it has started."""

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]


@dataclass(frozen=True)
class Adoption:
    """The programs that the page's commands have started in the directory `own`."""

    own: Path
    environment: dict[str, str]
    broker: SecuredBroker
    script: Future[str]

    @property
    def said(self) -> str:
        """The output of the commands."""
        log = self.own / LOG
        return log.read_text() if log.exists() else ""

    def logs(self) -> str:
        """Returns the logs of the programs."""
        return "\n".join(f"== {file.name}\n{file.read_text()}" for file in sorted(self.own.glob("*.log")))

    def sql(self, statement: str) -> None:
        execute(self.environment["STATECAST_DATABASE"], statement)


@pytest.fixture(scope="module")
def adoption(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Adoption]:
    """Yields once the page's commands have all been run."""
    directory = tmp_path_factory.mktemp("adoption")
    own = directory / "own"
    own.mkdir()
    with (
        secured_broker(directory / "broker") as broker,
        running_postgres(directory / "postgres") as server,
        ThreadPoolExecutor() as threads,
    ):
        environment = {**os.environ, **places(), **team_kafka(broker, own), **team_database(server, own)}
        script = threads.submit(run_script, f"{script_of(PAGE)}\n{HOLD}", own, environment)
        adoption = Adoption(own, environment, broker, script)
        try:
            wait_until(lambda: script.done() or f"{DONE}\n" in adoption.said, "the script does not end", TIMEOUT_S, 1)
            assert not script.done(), f"{adoption.said[-8000:]}\n{adoption.logs()[-20_000:]}"
            yield adoption
        finally:
            (own / "leave").touch()


def test_a_team_gets_from_nothing_to_a_live_view_by_the_page_alone(adoption: Adoption) -> None:
    said = adoption.said
    sys.stdout.write(f"seconds by step: {seconds_of(said)}\n")
    kinds = ('"tier": "TIER_BASIC"', '"balance": "0.00"', f'"invited_by": "{ACCOUNT}"', '"rows":[]')

    assert not [line for line in said.splitlines() if line.startswith("FAIL")], said
    assert [text for text in (*kinds, '"price":"260.00"', "STATE_CHECKED_IN") if text not in said] == []
    assert "ACLs of Kafka" not in adoption.logs()


def test_all_that_was_made_at_kafka_begins_with_the_prefix(adoption: Adoption) -> None:
    admin = AdminClient({"bootstrap.servers": adoption.broker.bootstrap, "log_level": 0})
    topics = {name for name in admin.list_topics(timeout=scaled(30)).topics if not KAFKAS_OWN.fullmatch(name)}
    groups = {each.group_id for each in admin.list_consumer_groups().result(scaled(30)).valid}

    assert {name for name in topics | groups if not name.startswith(PREFIX)} == set()
    assert {"acme.query-service", "acme.stream-processor.checkpointed"} <= groups


async def test_the_page_of_any_store_shows_an_update_and_a_delete(adoption: Adoption) -> None:
    async with browser_at(f"http://{adoption.environment['GATEWAY']}") as visits:
        alice = await visits.person()
        await alice.sign_in(
            f"/page/watch.html?store=reservations-by-account&group={ACCOUNT}", "API key", "alice-demo-key"
        )
        line = alice.page.get_by_role("row").filter(has_text="LON").filter(has_text="17")
        await alice.sees(line, "STATE_BOOKED")
        await alice.sees_light("Live")
        adoption.sql("UPDATE reservations SET state = 'checked_out' WHERE hotel = 'LON' AND number = 17")
        await alice.sees(line, "STATE_CHECKED_OUT")
        await alice.picture("watch")
        adoption.sql("DELETE FROM reservations WHERE hotel = 'LON' AND number = 17")

        await expect(line).to_be_hidden(timeout=scaled(30) * 1000)
        assert alice.complaints == []


def places() -> dict[str, str]:
    """Where a team would run it all on its own machine; free ports here."""
    query, shard, query_metrics, metrics, edge, connect, gateway = map(str, free_ports(7))
    return {
        "STATECAST": str(REPOSITORY),
        "PREFIX": PREFIX,
        "QUERY_SERVICE_PORT": query,
        "QUERY_SERVICE_SHARD_PORT": shard,
        "QUERY_SERVICE_METRICS_PORT": query_metrics,
        "STREAM_PROCESSOR_METRICS_PORT": metrics,
        "STATECAST_ADDRESS": f"127.0.0.1:{query}",
        "WS_EDGE_QUERY_ADDRESSES": f"127.0.0.1:{query}",
        "WS_EDGE_PORT": edge,
        "EDGE": f"127.0.0.1:{edge}",
        "CONNECT": f"http://127.0.0.1:{connect}",
        "GATEWAY": f"127.0.0.1:{gateway}",
    }


def team_kafka(broker: SecuredBroker, own: Path) -> dict[str, str]:
    """Returns a user with the rights that managed Kafka gives, and the files that it hands out."""
    broker.set_password(USER, "password-of-kafka")
    broker.allow_prefix(USER, PREFIX)
    settings = broker.with_password(USER)
    shutil.copy(str(settings["kafka_ssl_ca_location"]), own / "ca.pem")
    shutil.copy(str(settings["kafka_sasl_password_location"]), own / "kafka.password")
    return {"KAFKA": str(settings["kafka_bootstrap"]), "KAFKA_USER": USER}


def team_database(server: PostgresProcess, own: Path) -> dict[str, str]:
    """Returns a separate database with a user that may replicate but is no superuser."""
    server.execute(f"CREATE ROLE {USER} LOGIN REPLICATION PASSWORD '{PASSWORD}'")
    server.execute(f"CREATE DATABASE {DATABASE} OWNER {USER}")
    (own / "database.properties").write_text(f"password={PASSWORD}\n")
    return {"STATECAST_DATABASE": f"postgres://{USER}:{PASSWORD}@127.0.0.1:{server.server.port}/{DATABASE}"}
