"""`statecast doctor` on a table that was imported, with a real Debezium."""

import json
from pathlib import Path

import pytest

from kafka_topics.__main__ import main as kafka_topics
from statecast_client.__main__ import main as statecast
from testkit.debezium import CONNECTOR, running_connect
from testkit.postgres import PostgresProcess

pytestmark = pytest.mark.kafka


@pytest.mark.timeout(300)
def test_what_was_imported_is_sound_until_something_is_broken(
    database: PostgresProcess, kafka: str, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [database.server.dsn, "--topic-prefix", "doctor", "--table", "stock.levels", "--out", str(out)]
    assert statecast(["import", *command]) == 0
    assert kafka_topics([str(out / "topics.yaml"), "--bootstrap-server", kafka, "--replication-factor", "1"]) == 0
    config = json.loads((out / "connector.json").read_text()) | {"database.password": database.server.password}
    capsys.readouterr()

    with running_connect(tmp_path / "connect", kafka, {**config, "name": CONNECTOR}) as connect:
        url = f"http://127.0.0.1:{connect.worker.port}"
        arguments = ["doctor", "--files", str(out), "--kafka", kafka, "--connect", url, "--connector", CONNECTOR]
        arguments += ["--database", database.server.dsn]
        sound, said = statecast(arguments), capsys.readouterr().out
        database.execute("ALTER TABLE stock.levels REPLICA IDENTITY NOTHING")
        broken, complaint = statecast(arguments), capsys.readouterr().out
        database.execute("ALTER TABLE stock.levels REPLICA IDENTITY FULL")
        other = statecast([*arguments[:-4], "--connector", "other", *arguments[-2:]])
        unknown = capsys.readouterr().out

    assert sound == 0, said
    assert f"ok    connector {CONNECTOR}: runs\n" in said
    assert "ok    table stock.levels: has REPLICA IDENTITY FULL\n" in said
    assert broken == 1
    assert "FAIL  table stock.levels: has REPLICA IDENTITY NOTHING" in complaint
    assert other == 1
    assert f"FAIL  connector other: Connect at {url} does not have it; one of: {CONNECTOR}" in unknown


def test_a_silent_connect_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert statecast(["doctor", "--connect", "http://127.0.0.1:1", "--connector", "shop"]) == 1
    assert capsys.readouterr().out.startswith("FAIL  connect: Kafka Connect at http://127.0.0.1:1 does not answer")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "name something to look at"),
        (["--connect", "http://127.0.0.1:1"], "--connector is missing"),
        (["--kafka", "127.0.0.1:1", "--files", "nowhere"], "nowhere is no directory"),
        (["--files", "."], ". has no connector.json: name --kafka"),
    ],
)
def test_wrong_arguments_end_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str) -> None:
    assert statecast(["doctor", *arguments]) == 2
    assert reason in capsys.readouterr().err


CONNECTOR_FILE = {"topic.prefix": "shop", "table.include.list": "public.orders", "snapshot.mode": "never"}


def test_the_connector_of_the_files_is_looked_at_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "connector.json").write_text(json.dumps(CONNECTOR_FILE))
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/orders.yaml").write_text("source: {topic: old.public.orders}\nsink: {topic: orders}\n")

    assert statecast(["doctor", "--files", str(tmp_path), "--connector", "shop"]) == 1
    said = capsys.readouterr().out
    assert "WARN  snapshot.mode" in said
    assert "FAIL  source old.public.orders: the connector writes shop.public.orders" in said


@pytest.mark.parametrize("pipeline", ["source: orders", "source: {topic: [a]}", "source: {}", "sink: {topic: a}"])
def test_a_pipeline_without_its_topic_is_refused_by_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pipeline: str
) -> None:
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines/orders.yaml").write_text(pipeline)

    assert statecast(["doctor", "--files", str(tmp_path)]) == 2
    assert f"{tmp_path}/pipelines/orders.yaml: source must be keys and values" in capsys.readouterr().err


def test_a_connector_that_is_a_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "connector.json").mkdir()

    assert statecast(["doctor", "--files", str(tmp_path)]) == 2
    assert f"{tmp_path}/connector.json cannot be read: Is a directory" in capsys.readouterr().err
