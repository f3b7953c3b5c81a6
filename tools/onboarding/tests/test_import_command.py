"""`statecast import` writes what the services' own checks take."""

import json
from pathlib import Path

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from query_service.storage.stores_file import read_stores as read_query_stores
from statecast.descriptors import MessageTypes
from statecast_client.__main__ import main as statecast
from stream_processor.__main__ import main as stream_processor
from testkit.postgres import PostgresProcess
from ws_edge.channels import EDGE_STORES
from ws_edge.stores import read_stores as read_edge_stores

ALL_SHAPES = ["--shape", "latest", "--shape", "members", "--shape", "aggregate", "--group", "customer_id"]


def check(out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """All that the services check of the files before they start; returns the status of `stream-processor check`."""
    monkeypatch.setenv("STATECAST_DESCRIPTORS", str(out / "messages"))
    status = stream_processor(["check", *map(str, (out / "pipelines").iterdir())])
    types = MessageTypes.read(out / "messages")
    query = {store.name: store for store in read_query_stores(out / "query-stores.yaml", types)}
    edge = read_edge_stores(out / "edge-stores.yaml", types)
    topics = {topic.name: topic for topic in read_topics(out / "topics.yaml")}

    assert set(query) == {*edge, *EDGE_STORES}
    assert all(query[name].message == store.kind for name, store in edge.items())
    assert set(query) <= set(topics)
    for file in (out / "pipelines").iterdir():
        pipeline = yaml.safe_load(file.read_text())
        source = pipeline["source"]["topic"]
        assert {source, f"{source}.dead-letter", pipeline["sink"]["topic"]} <= set(topics)
        assert "compact" in topics[pipeline["sink"]["topic"]].config["cleanup.policy"]
    return status


@pytest.mark.parametrize("owner", [[], ["--owner", "grade"]])
def test_a_table_of_postgres_passes_all_checks(
    database: PostgresProcess, out: Path, monkeypatch: pytest.MonkeyPatch, owner: list[str]
) -> None:
    status = statecast(
        ["import", database.server.dsn, "--table", "public.shipments", *ALL_SHAPES, *owner, "--out", str(out)]
    )

    assert status == 0
    assert check(out, monkeypatch) == 0
    assert {path.name for path in (out / "pipelines").iterdir()} == {
        "shipments-by-key.yaml",
        "shipments-by-customer.yaml",
        "shipments-summed-by-customer.yaml",
    }


def test_each_column_becomes_a_field_with_what_is_to_be_known(database: PostgresProcess, out: Path) -> None:
    statecast(["import", database.server.dsn, "--table", "shipments", *ALL_SHAPES, "--out", str(out)])
    proto = (out / "messages/shipments.proto").read_text()

    for line in (
        "  // Of the primary key. A UUID.\n  string id = 1;",
        "  // Who has ordered it.\n  int64 customer_id = 2;",
        "  State state = 3;",
        "    STATE_ON_THE_WAY = 2;",
        "  // One of: first class, second class. Unset for NULL.\n  optional string grade = 4;",
        "  // The digits of a numeric(10,3), exactly. Unset for NULL.\n  optional string weight = 5;",
        "  int32 parcels = 6;",
        "  int64 price = 7;",
        "  // Of an array that holds NULLs make this a `string`: it is JSON then.\n  repeated string tags = 8;",
        "  google.protobuf.Timestamp updated_at = 12;",
        "  // Left out: twice: generated; PostgreSQL does not publish it.",
        "  // Left out: no name: a field has letters, digits and _.",
    ):
        assert line in proto
    types = MessageTypes.read(out / "messages")
    assert types.fields["team_statecast.v1.Shipments"] >= {"id", "due"}
    assert types.fields["team_statecast.v1.ShipmentsByCustomerId"] == {"customer_id", "rows", "parcels", "price"}


def test_members_are_sorted_by_the_time_of_change_and_the_replica_identity_is_told(
    database: PostgresProcess, out: Path
) -> None:
    statecast(["import", database.server.dsn, "--table", "shipments", *ALL_SHAPES, "--out", str(out)])
    text = (out / "pipelines/shipments-by-customer.yaml").read_text()

    assert yaml.safe_load(text)["keep"] == {"members": {"key": "id", "sort": "updated_at"}}
    assert "ALTER TABLE public.shipments REPLICA IDENTITY FULL;" in text


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


def test_a_composite_key_is_a_list(database: PostgresProcess, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    statecast(["import", database.server.dsn, "--table", "stock.levels", "--out", str(out)])
    pipeline = yaml.safe_load((out / "pipelines/levels-by-key.yaml").read_text())

    assert (pipeline["source"]["key"], pipeline["group_by"]) == (["depot", "article"], ["depot", "article"])
    assert "REPLICA IDENTITY" not in (out / "pipelines/levels-by-key.yaml").read_text()
    assert check(out, monkeypatch) == 0


def test_the_password_is_in_no_file(database: PostgresProcess, out: Path) -> None:
    statecast(["import", database.server.dsn, "--table", "shipments", "--out", str(out)])

    assert all(database.server.password not in path.read_text() for path in out.rglob("*") if path.is_file())


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--table", "public.shipment"], "did you mean public.shipments?"),
        ([], "--table is missing"),
        (["--table", "notes"], "notes has no primary key"),
        (["--table", "shipments", "--shape", "members"], "--group is missing"),
        (["--table", "shipments", "--group", "customer"], "did you mean customer_id?"),
        (["--table", "shipments", "--shape", "members", "--group", "weight", "--sort", "tags"], "no column to sort by"),
        (["--table", "shipments", "--shape", "members", "--group", "updated_at"], "no column of a key"),
        (["--table", "shipments", "--owner", "custmer_id"], "did you mean customer_id?"),
    ],
)
def test_what_cannot_be_imported_is_refused_and_nothing_is_written(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert statecast(["import", database.server.dsn, *arguments, "--out", str(out)]) == 2
    assert reason in capsys.readouterr().err
    assert not out.exists()


def test_a_database_that_does_not_answer_is_named_without_its_password(
    out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = "postgres://someone:throw-away@127.0.0.1:1/none"

    assert statecast(["import", url, "--table", "shipments", "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "PostgreSQL does not let us in" in error
    assert "throw-away" not in error


ROW = {"id": "p-1", "size": 3, "price": 1.5, "open": True, "at": "2026-11-23T00:00:00Z", "lines": [{"n": 1}], "x": None}
CONNECT_ROW = {
    "type": "struct",
    "field": "after",
    "fields": [
        {"field": "id", "type": "string"},
        {"field": "size", "type": "int32", "optional": True},
        {"field": "at", "type": "int64", "name": "io.debezium.time.MicroTimestamp"},
        {"field": "price", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "optional": True},
        {"field": "state", "type": "string", "name": "io.debezium.data.Enum", "parameters": {"allowed": "open,shut"}},
        {"field": "sizes", "type": "array", "items": {"type": "int32"}},
    ],
}
AVRO_ROW = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "size", "type": ["null", "int"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "SHUT"]}},
        {"name": "sizes", "type": {"type": "array", "items": "long"}},
        {"name": "texts", "type": {"type": "map", "values": "string"}},
    ],
}
AVRO_ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "fields": [
        {"name": "before", "type": ["null", AVRO_ROW]},
        {"name": "after", "type": ["null", "Value"]},
        {"name": "op", "type": "string"},
        {"name": "source", "type": "string"},
    ],
}


@pytest.mark.parametrize(
    ("option", "document", "fields"),
    [
        ("--sample", ROW, ["string id", "int64 size", "double price", "bool open", "repeated Lines lines", "string x"]),
        (
            "--sample",
            {"before": None, "after": ROW, "op": "c"},
            ["optional int64 size", "google.protobuf.Timestamp at"],
        ),
        ("--sample", {"schema": {"type": "struct", "fields": [CONNECT_ROW]}, "payload": {}}, ["optional string price"]),
        ("--sample", CONNECT_ROW, ["string id", "optional int32 size", "State state", "repeated int32 sizes"]),
        ("--avro", AVRO_ROW, ["optional int32 size", "google.protobuf.Timestamp at", "State state"]),
        ("--avro", AVRO_ENVELOPE, ["optional int32 size", "repeated int64 sizes"]),
    ],
)
def test_a_document_passes_all_checks(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, document: object, fields: list[str]
) -> None:
    file = tmp_path / "document.json"
    file.write_text(json.dumps(document))
    command = ["import", option, str(file), "--topic", "shop.parcels", "--key", "id", "--out", str(out)]

    assert statecast([*command, "--shape", "latest", "--shape", "members", "--group", "id", "--sort", "at"]) == 0
    assert check(out, monkeypatch) == 0
    proto = (out / "messages/parcels.proto").read_text()
    assert all(f" {field} = " in proto for field in fields)
    assert "package shop.v1;" in proto


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("[]", [], "it must be a JSON object"),
        ("{", [], "is not JSON"),
        ('{"id": 1}', ["--key", "ident"], "did you mean id?"),
        ('{"id": 1}', [], "--key is missing"),
        ("{}", ["--key", "id"], "it has no columns"),
    ],
)
def test_a_document_that_is_no_table_is_refused(
    out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, more: list[str], reason: str
) -> None:
    (tmp_path / "document.json").write_text(text)
    command = ["import", "--sample", str(tmp_path / "document.json"), "--topic", "parcels", *more, "--out", str(out)]

    assert statecast(command) == 2
    assert reason in capsys.readouterr().err
