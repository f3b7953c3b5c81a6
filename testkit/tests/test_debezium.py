"""A real Debezium sends the changes of a real PostgreSQL to a real broker."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from testkit import debezium, postgres, topics
from testkit.debezium import Connect, ConnectProcess, postgres_connector, running_connect
from testkit.postgres import Postgres, PostgresProcess, running_postgres
from testkit.waiting import eventually, wait_until

TABLE = """
CREATE TABLE parcels (number int PRIMARY KEY, state text NOT NULL);
ALTER TABLE parcels REPLICA IDENTITY FULL;
INSERT INTO parcels VALUES (1, 'packed');
"""

STARTS_POSTGRES = """
import sys, time
from pathlib import Path
from testkit.postgres import running_postgres
with running_postgres(Path(sys.argv[1])) as server:
    print(server.pid, flush=True)
    time.sleep(600)
"""


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProcess]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        server.execute(TABLE)
        yield server


@pytest.fixture(scope="module")
def topic(kafka: str) -> str:
    topics.create_topic(kafka, "testkit-parcels")
    return "testkit-parcels"


@pytest.fixture(scope="module")
def connect(
    database: PostgresProcess, kafka: str, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ConnectProcess]:
    connector = postgres_connector(database.server, ["parcels"], topics="testkit-$1")
    with running_connect(tmp_path_factory.mktemp("connect"), kafka, connector) as worker:
        yield worker


@pytest.fixture
def records(kafka: str, topic: str) -> Callable[[str], dict[str, object]]:
    """Waits for the change that leaves a row in that state, and returns Debezium's record of it."""

    def record(state: str) -> dict[str, object]:
        def arrived() -> dict[str, object]:
            values = [json.loads(record.value) for record in topics.read_topic(kafka, topic) if record.value]
            matching = [value for value in values if value["after"] and value["after"]["state"] == state]
            assert matching, f"no record has a row that is {state}"
            return dict(matching[-1])

        return eventually(arrived, timeout_s=60)

    return record


def test_nobody_reads_the_password_from_the_worker(connect: ConnectProcess, database: PostgresProcess) -> None:
    url = f"http://127.0.0.1:{connect.worker.port}/connectors/{debezium.CONNECTOR}/config"

    shown = httpx.get(url, trust_env=False).text

    assert f'"database.dbname":"{postgres.USER}"' in shown
    assert database.server.password not in shown


def test_an_update_arrives_as_debeziums_record(
    database: PostgresProcess, connect: ConnectProcess, records: Callable[[str], dict[str, object]]
) -> None:
    snapshot = records("packed")
    database.execute("UPDATE parcels SET state = %s WHERE number = %s", ["sent", 1])

    update = records("sent")

    assert (snapshot["op"], snapshot["before"]) == ("r", None)
    assert (update["op"], update["before"]) == ("u", {"number": 1, "state": "packed"})


def test_changes_pass_after_both_were_killed(
    database: PostgresProcess, connect: ConnectProcess, records: Callable[[str], dict[str, object]]
) -> None:
    database.execute("UPDATE parcels SET state = 'waiting' WHERE number = 1")
    connect.kill()
    database.kill()
    database.start()
    database.execute("UPDATE parcels SET state = 'delivered' WHERE number = 1")
    connect.start()

    assert records("waiting")["op"] == "u"
    assert records("delivered")["op"] == "u"


def test_postgresql_ends_with_the_program_that_started_it(tmp_path: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", STARTS_POSTGRES, tmp_path], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    pid = int(program.stdout.readline())
    runs_before = psutil.pid_exists(pid)
    program.kill()
    program.communicate()

    assert runs_before
    wait_until(lambda: not psutil.pid_exists(pid), "PostgreSQL still runs")


def test_without_its_programs_postgresql_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "PROGRAMS", tmp_path)

    with pytest.raises(FileNotFoundError, match=f"no PostgreSQL in {tmp_path}: run `make install`"):
        Postgres(tmp_path, 1).prepare()


def test_without_its_jars_connect_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(debezium, "LIBS", tmp_path)

    with pytest.raises(FileNotFoundError, match=f"no Debezium jars in {tmp_path}: run `make install`"):
        Connect(tmp_path, 1, "127.0.0.1:1", {}).prepare()
