"""Tables that are added to an earlier import: their files, names, messages and topics."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from query_service.storage.stores_file import read_stores
from statecast.descriptors import MessageTypes
from statecast_client.__main__ import main as statecast
from testkit.postgres import PostgresProcess

ALL_SHAPES = ["--shape", "latest", "--shape", "members", "--shape", "aggregate", "--group", "customer_id"]


def test_a_second_table_is_added_to_what_was_edited(
    database: PostgresProcess, out: Path, check: Callable[[], int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments"]) == 0
    pipeline = out / "pipelines/shipments-by-key.yaml"
    edited = pipeline.read_text().replace("readers: staff", "readers: everyone")
    pipeline.write_text(edited)
    connector = json.loads((out / "connector.json").read_text()) | {"poll.interval.ms": "7"}
    (out / "connector.json").write_text(json.dumps(connector))

    assert statecast([*command, "--table", "shipments"]) == 2
    assert "is there already" in capsys.readouterr().err
    assert statecast([*command, "--table", "stock.levels"]) == 0
    assert pipeline.read_text() == edited
    added = json.loads((out / "connector.json").read_text())
    assert added["table.include.list"] == "public.shipments,stock.levels"
    assert added["poll.interval.ms"] == "7"
    assert check() == 0
    names = [topic.name for topic in read_topics(out / "topics.yaml")]
    assert len(names) == len(set(names)) == 9
    types = MessageTypes.read(out / "messages")
    stores = {store.name: store.readers for store in read_stores(out / "stores.yaml", types)}
    assert stores.items() >= {"shipments-by-key": "everyone", "levels-by-key": "staff"}.items()


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
    [entries] = yaml.safe_load((out / "stores.yaml").read_text()).values()
    stores = {store["name"]: store["topic"] for store in entries}
    topics = {topic.name for topic in read_topics(out / "topics.yaml")}

    assert all(topic.startswith("acme.") for topic in topics)
    assert stores["levels-by-key"] == "acme.levels-by-key"
    assert stores["push-channels"] == "acme.push-channels"
    assert set(stores.values()) < topics


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--kafka-prefix", "other."], "domain.yaml: topic_prefix: is 'acme.', not 'other.'"),
        (["--kafka-prefix", ""], "domain.yaml: topic_prefix: is 'acme.', not ''"),
        (["--kafka-prefix", "acme/"], "--kafka-prefix 'acme/' begins no topic"),
        (["--kafka-prefix", "x" * 200], "begins no topic"),
    ],
)
def test_a_prefix_that_cannot_be_is_refused(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    command = ["import", database.server.dsn, "--out", str(out)]
    assert statecast([*command, "--table", "shipments", "--kafka-prefix", "acme."]) == 0
    before = contents(out)

    assert statecast([*command, "--table", "stock.levels", *arguments]) == 2
    assert reason in capsys.readouterr().err
    assert contents(out) == before


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
    before = contents(out)

    assert statecast([*command, "order"]) == 2
    error = capsys.readouterr().err
    assert "OrderChange" in error
    assert f"{out}/messages/order" in error
    assert contents(out) == before


TOPIC = "{name: statecast.stock.levels, partitions: 4, writers: [debezium]}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("topics:\n  - name: a\n", f"topics:\n  - name: a\n  - {TOPIC}\n"),
        ("topics:\n- name: a\n  writers: [b]", f"topics:\n- name: a\n  writers: [b]\n- {TOPIC}"),
        (
            "# Ours.\ntopics:\n  - {name: a}  # old\n\nstores: []  # none\n",
            f"# Ours.\ntopics:\n  - {{name: a}}  # old\n  - {TOPIC}\n\nstores: []  # none\n",
        ),
        ("topics: [{name: a}]\n", f"topics: [{{name: a}}, {TOPIC}]\n"),
        ("topics: [\n  {name: a},  # old\n]\n", f"topics: [\n  {{name: a}}, {TOPIC},  # old\n]\n"),
        ("topics: []\nstores: []\n", f"topics: [{TOPIC}]\nstores: []\n"),
        ("description: Ours.", f"description: Ours.\ntopics:\n  - {TOPIC}\n"),
        ("topics:\n  - name: statecast.stock.levels\n    partitions: 9\n", None),
    ],
)
def test_a_topic_is_added_to_domain_yaml_in_the_style_that_it_has(
    database: PostgresProcess, out: Path, check: Callable[[], int], before: str, after: str | None
) -> None:
    (out / "pipelines").mkdir(parents=True)
    (out / "pipelines/domain.yaml").write_text(before)

    assert statecast(["import", database.server.dsn, "--out", str(out), "--table", "stock.levels"]) == 0
    assert (out / "pipelines/domain.yaml").read_text() == (after or before)
    assert check() == 0


STORE = "stores: [{name: levels-by-key, topic: b, message: json}]\n"
PIPELINE = """\
name: other
source: {topic: statecast.stock.levels, message: statecast.orders.v1.OrderChange}
group_by: order_id
keep: latest
sink: {topic: c}
"""


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("domain.yaml", "topics: [", "domain.yaml: is not YAML"),
        ("domain.yaml", "topics: " + "[" * 10_000, "domain.yaml: is not YAML: it is nested too deeply"),
        ("domain.yaml", "topics:\n  - a\n", "domain.yaml: topics[0]: "),
        ("domain.yaml", "topic: []\n", "domain.yaml: topic: unknown key; did you mean topics?"),
        ("domain.yaml", "{description: Ours.}", "domain.yaml: topics: there is no place for another one: add the line"),
        ("domain.yaml", "topics: [{name: levels-by-key}]\n", "the topic levels-by-key is also that of "),
        ("domain.yaml", "topics: [{name: b}]\n" + STORE, "stores[0].name: there is another store levels-by-key"),
        ("other.yaml", PIPELINE.replace("{topic: s", "{topic: S"), "other.yaml: source.topic: no pipeline writes S"),
        (
            "other.yaml",
            PIPELINE.replace("{topic: c", "{topic: levels-by-key"),
            "the topic levels-by-key is also that",
        ),
        (
            "other.yaml",
            PIPELINE.replace("name: other", "name: levels-by-key"),
            "other.yaml: name: levels-by-key is ",
        ),
    ],
)
def test_what_conflicts_with_a_table_is_named_by_file_and_key_and_nothing_is_written(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, reason: str
) -> None:
    (out / "pipelines").mkdir(parents=True)
    (out / "pipelines" / file).write_text(text)
    before = contents(out)

    assert statecast(["import", database.server.dsn, "--out", str(out), "--table", "stock.levels"]) == 2
    error = capsys.readouterr().err
    assert f"{out}/pipelines/" in error
    assert reason in error
    assert contents(out) == before


def contents(out: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
