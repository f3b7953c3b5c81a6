"""Imported tables arrive through a real Debezium: as they are in the database, and beside tables that come later."""

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from statecast_client.__main__ import main as statecast
from testkit.debezium import CONNECTOR, ConnectProcess, mariadb_connector, running_connect
from testkit.mariadb import running_mariadb
from testkit.postgres import PostgresProcess
from testkit.topics import create_topic, read_topic
from testkit.waiting import scaled, wait_until

pytestmark = pytest.mark.kafka

TABLES = """
CREATE TABLE parcels (id int PRIMARY KEY, state text DEFAULT 'new', weight numeric DEFAULT 1.5,
                      pieces int NOT NULL DEFAULT 1);
CREATE TABLE scans (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE TABLE scans_2026 PARTITION OF scans FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
"""
DROP = "DROP TABLE parcels, scans"
IS_READ = """
SELECT 1 FROM pg_replication_slots, pg_publication_tables p
WHERE slot_name = 'statecast_capture' AND active AND pubname = slot_name AND p.tablename = %s
"""


def payloads(kafka: str, topic: str) -> list[dict[str, Any]]:
    """Returns the changes on a topic, with or without a schema beside them."""
    documents = [json.loads(record.value) for record in read_topic(kafka, topic) if record.value]
    return [document.get("payload", document) for document in documents]


def operations(kafka: str, topic: str) -> str:
    return "".join(payload["op"] for payload in payloads(kafka, topic))


def wait_until_read(database: PostgresProcess, table: str) -> None:
    """Waits until the connector streams, and the table is published."""
    wait_until(lambda: database.execute(IS_READ, [table]), f"nobody reads {table}", timeout_s=60)


def put(connect: ConnectProcess, config: dict[str, str]) -> None:
    url = f"http://127.0.0.1:{connect.worker.port}/connectors/{CONNECTOR}/config"
    httpx.put(url, json=config, timeout=scaled(30), trust_env=False).raise_for_status()


@pytest.mark.timeout(300)
def test_tables_that_come_later_arrive_beside_the_first(
    database: PostgresProcess, kafka: str, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database.execute(TABLES)
    parcels, scans = "capture.public.parcels", "capture.public.scans"

    def imported(table: str) -> dict[str, str]:
        """Imports a table and makes its topics; returns the connector's configuration."""
        command = [database.server.dsn, "--topic-prefix", "capture", "--table", table, "--out", str(out)]
        assert statecast(["import", *command]) == 0
        system = [str(out / "pipelines"), "--kafka", kafka, "--out", str(out)]
        assert statecast(["apply", *system, "--replication-factor", "1"]) == 0
        config: dict[str, str] = json.loads((out / "connector.json").read_text())
        return {**config, "database.password": database.server.password, "retriable.restart.connector.wait.ms": "1000"}

    with running_connect(tmp_path / "connect", kafka, {**imported("parcels"), "name": CONNECTOR}) as connect:
        wait_until_read(database, "parcels")
        database.execute("INSERT INTO parcels VALUES (1, NULL, NULL)")
        database.execute("UPDATE parcels SET pieces = 2")
        database.execute("DELETE FROM parcels")
        wait_until(lambda: operations(kafka, parcels) == "cud", "the changes do not arrive", timeout_s=30)
        before = payloads(kafka, parcels)

        database.execute("INSERT INTO scans VALUES (1, '2026-05-05')")
        put(connect, imported("scans"))
        advice = capsys.readouterr().out
        wait_until_read(database, "scans")
        database.execute("UPDATE public.scans SET id = id")
        database.execute("INSERT INTO scans VALUES (2, '2026-05-05')")
        database.execute("INSERT INTO parcels VALUES (2)")
        database.execute("TRUNCATE scans")
        wait_until(lambda: operations(kafka, parcels) == "cudc", "the first table has no more changes", timeout_s=60)
        wait_until(lambda: len(operations(kafka, scans)) == 3, "the second table does not arrive", timeout_s=60)
        after = payloads(kafka, scans)

        url = f"http://127.0.0.1:{connect.worker.port}"
        doctor = ["doctor", "--files", str(out), "--connect", url, "--connector", CONNECTOR]
        doctor += ["--database", database.server.dsn]
        capsys.readouterr()
        sound, said = statecast(doctor), capsys.readouterr().out
        settings = json.loads((out / "connector.json").read_text())
        lost = {"skipped.operations": "t", "table.include.list": "public.parcels"}
        put(connect, {**settings, **lost, "database.password": database.server.password})
        wait_until(lambda: not connect.worker.unready_reason(), "the connector does not run again")
        broken, complaint = statecast([*doctor, "--table", "parcels"]), capsys.readouterr().out
    database.execute(f"SELECT pg_drop_replication_slot('statecast_capture'); {DROP}")

    assert (before[0]["after"], before[1]["after"]["state"]) == (
        {"id": 1, "state": None, "weight": None, "pieces": 1},
        None,
    )
    assert "UPDATE public.scans SET id = id;" in advice
    assert {(payload["op"], (payload["after"] or {}).get("id")) for payload in after} == {
        ("u", 1),
        ("c", 2),
        ("t", None),
    }
    assert sound == 0, said
    assert "ok    slot statecast_capture: is read" in said
    assert broken == 1
    assert f"ok    connector {CONNECTOR}: runs" in complaint
    assert "FAIL  slot statecast_capture: the connector runs, and nobody reads it" in complaint


@pytest.mark.long
@pytest.mark.timeout(300)
def test_null_is_no_default_of_a_column_of_mariadb(kafka: str, tmp_path: Path) -> None:
    create_topic(kafka, "mariadb-parcels", 1)
    with running_mariadb(tmp_path / "mariadb") as database:
        database.execute(
            "CREATE TABLE parcels (id int PRIMARY KEY, state text DEFAULT 'new', weight decimal(9, 3) DEFAULT 1.5)"
        )
        config = mariadb_connector(database.server, kafka, ["parcels"], "mariadb-$1", decimal_handling_mode="string")
        database.execute("INSERT INTO parcels VALUES (1, NULL, NULL)")
        with running_connect(tmp_path / "connect", kafka, config):
            wait_until(lambda: operations(kafka, "mariadb-parcels") == "r", "no snapshot arrives")
            database.execute("INSERT INTO parcels VALUES (2, 'old', NULL)")
            database.execute("UPDATE parcels SET state = NULL WHERE id = 2")
            wait_until(lambda: operations(kafka, "mariadb-parcels") == "rcu", "no changes arrive")

    read, created, updated = (payload["after"] for payload in payloads(kafka, "mariadb-parcels"))
    assert read == {"id": 1, "state": None, "weight": None}
    assert created == {"id": 2, "state": "old", "weight": None}
    assert updated == {"id": 2, "state": None, "weight": None}
