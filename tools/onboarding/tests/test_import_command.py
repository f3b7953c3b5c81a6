"""`statecast import` writes files that pass the services' own checks."""

import json
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from statecast.descriptors import MessageTypes
from statecast_client.__main__ import main as statecast
from testkit.postgres import PostgresProcess

LONGEST = "order_lines_of_all_regions_and_years_that_nobody_has_archived__"
"""As many characters as PostgreSQL takes in a name."""
ALL_SHAPES = ["--shape", "latest", "--shape", "members", "--shape", "aggregate", "--group", "customer_id"]


@pytest.mark.parametrize("owner", [[], ["--owner", "grade"], ["--owner", "customer_id"]])
def test_a_table_of_postgres_passes_all_checks(
    database: PostgresProcess, out: Path, check: Callable[[], int], owner: list[str]
) -> None:
    status = statecast(
        ["import", database.server.dsn, "--table", "public.shipments", *ALL_SHAPES, *owner, "--out", str(out)]
    )

    assert status == 0
    assert check() == 0
    assert {path.name for path in (out / "pipelines").glob("*-by-*.yaml")} == {
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
        "  // A numeric(10,3). Unset for NULL.\n"
        "  optional string weight = 5 [(statecast.change.v1.decimal) = {precision: 10, scale: 3}];",
        "  int32 parcels = 6;",
        "  int64 price = 7;",
        "  // Of an array that holds NULLs make this a `string`: it is JSON then.\n  repeated string tags = 8;",
        "  google.protobuf.Timestamp updated_at = 12;",
        "  // Left out: twice: generated; PostgreSQL does not publish it.",
        "  // Left out: no name: a field begins with a letter and has letters, digits and _.",
    ):
        assert line in proto
    types = MessageTypes.read(out / "messages")
    assert types.fields["team_statecast.v1.Shipments"] >= {"id", "due"}
    assert types.fields["team_statecast.v1.ShipmentsByCustomerId"] == {
        "customer_id",
        "rows",
        "weight",
        "parcels",
        "price",
    }


def test_a_numeric_is_a_decimal_to_sql_where_its_scale_is_known(
    database: PostgresProcess, out: Path, check: Callable[[], int]
) -> None:
    command = ["import", database.server.dsn, "--table", "prices", "--shape", "aggregate", "--group", "shop"]
    assert statecast([*command, "--out", str(out)]) == 0
    proto = (out / "messages/prices.proto").read_text()

    def decimal(precision: int, scale: int) -> str:
        return f"[(statecast.change.v1.decimal) = {{precision: {precision}, scale: {scale}}}];\n"

    for line in (
        f"  // A numeric(12,2).\n  string net = 3 {decimal(12, 2)}",
        "  // A numeric. Digits, exactly; to SQL a text, because the column has no scale. Unset for NULL.\n"
        "  optional string rate = 4;\n",
        "  // A numeric(18,0). Unset for NULL.\n  optional int64 whole = 5;\n",
        f"  optional string large = 6 {decimal(20, 0)}",
        f"  optional string tiny = 7 {decimal(5, 5)}",
        f"  optional string rounded = 8 {decimal(7, 0)}",
        "because it has more than 38. Unset for NULL.\n  optional string huge = 9;\n",
        f"  repeated string several = 10 {decimal(8, 2)}",
        f"  // The sum.\n  string net = 3 {decimal(38, 2)}",
    ):
        assert line in proto, proto
    [pipeline] = (out / "pipelines").glob("*-by-*.yaml")
    sums = yaml.safe_load(pipeline.read_text())["keep"]["aggregate"]
    assert set(sums) == {"rows", "net", "whole", "large", "tiny", "rounded"}
    assert check() == 0


def test_members_are_sorted_by_the_time_of_change_and_the_replica_identity_is_told(
    database: PostgresProcess, out: Path
) -> None:
    statecast(["import", database.server.dsn, "--table", "shipments", *ALL_SHAPES, "--out", str(out)])
    text = (out / "pipelines/shipments-by-customer.yaml").read_text()

    assert yaml.safe_load(text)["keep"] == {"members": {"key": "id", "sort": "updated_at"}}
    assert "DEFAULT; for updates that leave large values as they are it needs:" in text
    assert "ALTER TABLE public.shipments REPLICA IDENTITY FULL;" in text


def test_an_owner_of_digits_becomes_a_text(database: PostgresProcess, out: Path) -> None:
    command = ["import", database.server.dsn, "--table", "shipments", "--owner", "customer_id", "--out", str(out)]
    statecast([*command, *ALL_SHAPES])
    proto = (out / "messages/shipments.proto").read_text()

    note = "  // Who has ordered it. Digits as text, because the edge compares them with the consumer's id.\n"
    assert f"{note}  string customer_id = 2;" in proto
    assert "readers: {field: customer_id, group: true}" in (out / "pipelines/shipments-by-customer.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "topic"),
    [
        (["--table", "Order Items", *ALL_SHAPES], "statecast.public.Order_Items"),
        (["--table", "größe"], "statecast.public.gr__e"),
        (["--table", "2024_orders"], "statecast.public.2024_orders"),
        (["--table", "order"], "statecast.public.order"),
    ],
)
def test_any_name_of_a_table_passes_all_checks(
    database: PostgresProcess, out: Path, check: Callable[[], int], arguments: list[str], topic: str
) -> None:
    assert statecast(["import", database.server.dsn, "--out", str(out), *arguments]) == 0
    assert check() == 0
    assert topic in {each.name for each in read_topics(out / "topics.yaml")}
    assert json.loads((out / "connector.json").read_text())["table.include.list"] == f"public.{arguments[1]}"


def test_a_table_whose_name_is_too_long_for_a_pipeline_is_imported_under_another(
    database: PostgresProcess, out: Path, check: Callable[[], int], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table", LONGEST]
    assert statecast(command) == 2
    error = capsys.readouterr().err
    assert "order-lines-of-all-regions-and-years-that-nobody-has-archived-by-key has 68 characters" in error
    assert "at most 63: take a --name of at most 56" in error
    assert not out.exists()

    assert statecast([*command, "--name", "order-lines"]) == 0
    assert check() == 0
    [pipeline] = (out / "pipelines").glob("*-by-*.yaml")
    assert (pipeline.name, yaml.safe_load(pipeline.read_text())["name"]) == (
        "order-lines-by-key.yaml",
        "order-lines-by-key",
    )
    assert yaml.safe_load(pipeline.read_text())["source"]["topic"] == f"statecast.public.{LONGEST}"
    assert json.loads((out / "connector.json").read_text())["table.include.list"] == f"public.{LONGEST}"


def test_columns_that_no_field_can_stand_for_are_left_out_with_the_reason(database: PostgresProcess, out: Path) -> None:
    statecast(["import", database.server.dsn, "--table", "größe", "--out", str(out)])
    [proto] = [path.read_text() for path in (out / "messages").iterdir()]

    assert "// Left out: ID: it differs from id in case or _ only." in proto
    assert "// Left out: _id: a field begins with a letter and has letters, digits and _." in proto


def test_what_cannot_be_written_or_read_is_named(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table", "shipments"]
    out.write_text("")
    assert statecast(command) == 2
    assert f"statecast: {out}/messages cannot be read or written: Not a directory" in capsys.readouterr().err

    out.unlink()
    (out / "connector.json").mkdir(parents=True)
    assert statecast(command) == 2
    assert f"statecast: {out}/connector.json cannot be read: Is a directory" in capsys.readouterr().err


def test_a_composite_key_is_a_list(database: PostgresProcess, out: Path, check: Callable[[], int]) -> None:
    statecast(["import", database.server.dsn, "--table", "stock.levels", "--out", str(out)])
    pipeline = yaml.safe_load((out / "pipelines/levels-by-key.yaml").read_text())

    assert (pipeline["source"]["key"], pipeline["group_by"]) == (["depot", "article"], ["depot", "article"])
    assert "REPLICA IDENTITY" not in (out / "pipelines/levels-by-key.yaml").read_text()
    assert check() == 0


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
        (["--table", "shipments", "--owner", "state"], "state cannot be the owner: it is of type enum"),
        (
            ["--table", "shipments", "--owner", "customer_id", "--sort", "customer_id"],
            "--sort customer_id: the owner's",
        ),
        (["--table", "shipments", "--owner", "updated_at"], "is of type google.protobuf.Timestamp"),
        (["--table", "shipments", "--owner", "tags"], "it is of type repeated string"),
        (["--table", "shipments", "--package", "my-shop.v1"], 'shipments.proto:5:11: Expected ";"'),
        (
            ["--table", LONGEST, "--shape", "members", "--group", LONGEST, "--name", "a"],
            f"at most 63: --group {LONGEST} leaves no room for a --name; take a column with a shorter name",
        ),
        (["--table", "shipments", "--name", "Shipments"], "--name 'Shipments' is no name: it has small letters"),
        (["--table", "shipments", "--name", ""], "--name '' is no name"),
        (["--table", "shipments", "--name", "größe"], "--name 'größe' is no name"),
        (["--table", "shipments", "--topic-prefix", "p" * 230], "has 247 characters, and a source has at most 237"),
        (["--table", "two\nlines"], r"'two\nlines' has characters that cannot be printed: rename the table"),
        (
            ["--table", "2024_orders", "--shape", "latest", "--shape", "members", "--group", "key"],
            "latest, members with --group key would have one name",
        ),
    ],
)
def test_what_cannot_be_imported_is_refused_and_nothing_is_written(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    assert statecast(["import", database.server.dsn, *arguments, "--out", str(out)]) == 2
    assert reason in capsys.readouterr().err
    assert not out.exists()


def test_a_database_that_is_named_by_no_url_is_refused(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = urlsplit(database.server.dsn)
    keywords = f"host={parts.hostname} port={parts.port} dbname={parts.path[1:]} user={parts.username}"
    hosts = database.server.dsn.replace(f":{parts.port}", f":{parts.port},127.0.0.1:{parts.port}")

    for url, reason in (
        (f"{keywords} password={parts.password}", "the database is no URL: write postgres://user:password@host/name"),
        (hosts, "the URL of the database must name one host and one port"),
    ):
        assert statecast(["import", url, "--table", "shipments", "--out", str(out)]) == 2
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
