"""Tables that are added to what an import wrote before: their files, names, messages and topics."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from statecast_client.__main__ import main as statecast
from testkit.postgres import PostgresProcess

ALL_SHAPES = ["--shape", "latest", "--shape", "members", "--shape", "aggregate", "--group", "customer_id"]


def test_a_second_table_is_added_to_what_was_edited(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments"]) == 0
    edited = (out / "edge-stores.yaml").read_text().replace("staff", "everyone")
    (out / "edge-stores.yaml").write_text(edited)
    connector = json.loads((out / "connector.json").read_text()) | {"poll.interval.ms": "7"}
    (out / "connector.json").write_text(json.dumps(connector))

    assert statecast([*command, "--table", "shipments"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert statecast([*command, "--table", "stock.levels"]) == 0
    assert (out / "edge-stores.yaml").read_text().startswith(edited)
    added = json.loads((out / "connector.json").read_text())
    assert added["table.include.list"] == "public.shipments,stock.levels"
    assert added["poll.interval.ms"] == "7"
    names = [topic.name for topic in read_topics(out / "topics.yaml")]
    assert len(names) == len(set(names)) == 8


def test_a_second_table_takes_the_prefix_of_the_connector(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments", "--topic-prefix", "shop"]) == 0
    assert statecast([*command, "--table", "stock.levels", "--topic-prefix", "other"]) == 2
    assert "connector.json has topic.prefix shop, not other" in capsys.readouterr().err

    assert statecast([*command, "--table", "stock.levels"]) == 0
    source = yaml.safe_load((out / "pipelines/levels-by-key.yaml").read_text())["source"]
    assert source["topic"] == "shop.stock.levels"
    assert json.loads((out / "connector.json").read_text())["topic.prefix"] == "shop"


def test_all_topics_begin_with_the_prefix_of_kafka_which_further_tables_keep(
    database: PostgresProcess, out: Path, check: Callable[[], int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments", *ALL_SHAPES, "--kafka-prefix", "acme."]) == 0
    assert "WS_EDGE_TOPIC_PREFIX=acme." in capsys.readouterr().out
    assert statecast([*command, "--table", "stock.levels"]) == 0
    assert check() == 0
    assert json.loads((out / "connector.json").read_text())["topic.prefix"] == "acme.statecast"
    [entries] = yaml.safe_load((out / "query-stores.yaml").read_text()).values()
    stores = {store["name"]: store["topic"] for store in entries}
    topics = {topic.name for topic in read_topics(out / "topics.yaml")}

    assert all(topic.startswith("acme.") for topic in topics)
    assert stores["levels-by-key"] == "acme.levels-by-key"
    assert stores["push-channels"] == "acme.push-channels"
    assert set(stores.values()) < topics


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--kafka-prefix", "other."], "query-stores.yaml has topics that begin with 'acme.', not 'other.'"),
        (["--kafka-prefix", ""], "query-stores.yaml has topics that begin with 'acme.', not ''"),
        (["--kafka-prefix", "acme/"], "--kafka-prefix 'acme/' begins no topic"),
        (["--kafka-prefix", "x" * 200], "begins no topic"),
    ],
)
def test_a_prefix_that_cannot_be_is_refused(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments", "--kafka-prefix", "acme."]) == 0
    before = (out / "topics.yaml").read_text()

    assert statecast([*command, "--table", "stock.levels", *arguments]) == 2
    assert reason in capsys.readouterr().err
    assert (out / "topics.yaml").read_text() == before


def test_a_topic_outside_the_prefix_is_refused(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table", "shipments", "--kafka-prefix", "acme."]

    assert statecast([*command, "--topic-prefix", "shop"]) == 2
    assert "the topic shop.public.shipments does not begin with acme." in capsys.readouterr().err
    assert not out.exists()


def test_a_second_table_is_one_of_the_connectors_database(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments"]) == 0
    connector = json.loads((out / "connector.json").read_text())
    (out / "connector.json").write_text(json.dumps({**connector, "database.dbname": "elsewhere"}))

    assert statecast([*command, "--table", "stock.levels", "--topic-prefix", connector["topic.prefix"]]) == 2
    assert "has database.dbname elsewhere, not statecast" in capsys.readouterr().err
    (out / "connector.json").write_text(json.dumps({**connector, "database.hostname": "database"}))
    assert statecast([*command, "--table", "stock.levels"]) == 2
    assert "or confirm with --topic-prefix statecast that it is one server" in capsys.readouterr().err
    assert statecast([*command, "--table", "stock.levels", "--topic-prefix", connector["topic.prefix"]]) == 0


def test_a_table_of_the_same_name_is_added_under_another(
    database: PostgresProcess, out: Path, check: Callable[[], int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table"]
    assert statecast([*command, "shipments"]) == 0
    assert statecast([*command, "stock.levels", "--name", "shipments"]) == 2
    assert "take another --out or --name" in capsys.readouterr().err

    assert statecast([*command, "stock.levels", "--name", "2-stock"]) == 0
    assert check() == 0
    assert "message Table2Stock {" in (out / "messages/2-stock.proto").read_text()


def test_messages_of_two_tables_that_clash_are_refused(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table"]
    assert statecast([*command, "order_change"]) == 0
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}

    assert statecast([*command, "order"]) == 2
    error = capsys.readouterr().err
    assert "OrderChange" in error
    assert f"{out}/messages/order" in error
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_file_without_its_last_newline_is_added_to(database: PostgresProcess, out: Path) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table"]
    assert statecast([*command, "shipments"]) == 0
    (out / "topics.yaml").write_text((out / "topics.yaml").read_text().rstrip("\n"))

    assert statecast([*command, "stock.levels"]) == 0
    assert len(read_topics(out / "topics.yaml")) == 8


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("topics:\n- name: a\n", "topics.yaml cannot be added to: give each entry"),
        ("topics: " + "[" * 10_000, "topics.yaml is no list of entries with names any more"),
        ("topics: [", "topics.yaml is no list of entries with names any more"),
        ("topics:\n  - a\n", "topics.yaml is no list of entries with names any more"),
    ],
)
def test_a_file_that_cannot_be_added_to_stays_as_it_is(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    out.mkdir()
    (out / "topics.yaml").write_text(text)

    assert statecast(["import", database.server.dsn, "--out", str(out), "--table", "shipments"]) == 2
    assert reason in capsys.readouterr().err
    assert [path.name for path in out.iterdir()] == ["topics.yaml"]
    assert (out / "topics.yaml").read_text() == text
