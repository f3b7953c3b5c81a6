"""Tables of a real PostgreSQL with changes that the log does not tell, or not as they were made."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from statecast_client.__main__ import main as statecast
from statecast_onboarding.doctor import slot_checks
from statecast_onboarding.doctor.database_checks import check_database
from testkit.postgres import PostgresProcess

CONFIG = {"slot.name": "kinds", "publication.name": "kinds", "publication.autocreate.mode": "disabled"}
UNSENT = (
    "size (kinds.size), sizes (kinds.size[]), stays (interval[]), place (pg_lsn), counts (kinds.count[]), "
    "ranges (int4multirange), flags (bit[]), grid (integer[][])"
)
SCHEMA = """
CREATE SCHEMA kinds;
CREATE TABLE kinds.deferrable (id int PRIMARY KEY DEFERRABLE);
CREATE UNLOGGED TABLE kinds.unlogged (id int PRIMARY KEY);
CREATE VIEW kinds.a_view AS SELECT * FROM kinds.deferrable;
CREATE MATERIALIZED VIEW kinds.a_copy AS SELECT * FROM kinds.deferrable;
CREATE TABLE kinds.parent (id int PRIMARY KEY);
CREATE TABLE kinds.child () INHERITS (kinds.parent);
CREATE TABLE kinds.parts (id int, day date, PRIMARY KEY (id, day)) PARTITION BY RANGE (day);
CREATE UNLOGGED TABLE kinds.parts_old PARTITION OF kinds.parts FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
CREATE TABLE kinds.parts_new PARTITION OF kinds.parts FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
ALTER TABLE kinds.parts REPLICA IDENTITY FULL;
CREATE TABLE kinds.small (id int PRIMARY KEY, amount numeric(12, 2), day date);
CREATE TABLE kinds.floats (id text PRIMARY KEY, readings float8[], prices numeric[], note text);
CREATE TABLE kinds.texts (id int PRIMARY KEY, note text, tags text[]);
CREATE TABLE kinds.computed (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (id * 2) STORED, document oid);
CREATE TABLE kinds.computed_key (id int, twice int GENERATED ALWAYS AS (id * 2) STORED PRIMARY KEY);
CREATE TYPE kinds.size AS (width int, height int);
CREATE DOMAIN kinds.count AS int;
CREATE TYPE kinds.mood AS ENUM ('good');
CREATE TABLE kinds.boxes (id int PRIMARY KEY, size kinds.size, sizes kinds.size[], stays interval[],
  place pg_lsn, counts kinds.count[], ranges int4multirange, flags bit(3)[],
  at int4range[], moods kinds.mood[], kept kinds.count, grid int[][]);
CREATE TABLE kinds.by_size (size kinds.size PRIMARY KEY);
CREATE TABLE kinds.by_index (id int PRIMARY KEY, code int NOT NULL UNIQUE);
ALTER TABLE kinds.by_index REPLICA IDENTITY USING INDEX by_index_code_key;
"""


@pytest.fixture(scope="module", autouse=True)
def schema(database: PostgresProcess) -> Iterator[None]:
    database.execute(SCHEMA)
    yield
    database.execute("DROP SCHEMA kinds CASCADE")


def lines(database: PostgresProcess, *tables: str, runs: bool = False) -> list[str]:
    names = [f"kinds.{table}" for table in tables]
    return [str(each) for each in check_database(database.server.dsn, names, CONFIG, runs)]


@pytest.mark.parametrize(
    ("table", "start"),
    [
        ("deferrable", "FAIL  table kinds.deferrable: has a DEFERRABLE primary key"),
        ("unlogged", "FAIL  table kinds.unlogged: is UNLOGGED"),
        ("a_view", "FAIL  table kinds.a_view: is a view"),
        ("a_copy", "FAIL  table kinds.a_copy: is a materialized view"),
        ("parent", "FAIL  table kinds.parent: is inherited by kinds.child"),
        ("parts", "FAIL  table kinds.parts: has partitions that are UNLOGGED or elsewhere, kinds.parts_old"),
        ("parts", "WARN  table kinds.parts: has partitions: DETACH, DROP and TRUNCATE of one are not in the log"),
        ("parts", "ok    table kinds.parts: has REPLICA IDENTITY DEFAULT, and no column takes large values"),
        ("small", "ok    table kinds.small: has REPLICA IDENTITY DEFAULT, and no column takes large values"),
        (
            "floats",
            "FAIL  table kinds.floats: has REPLICA IDENTITY DEFAULT, and readings (double precision[]), prices ",
        ),
        ("texts", "WARN  table kinds.texts: has REPLICA IDENTITY DEFAULT: an update leaves out large values that"),
        ("computed", "WARN  table kinds.computed: twice are generated"),
        ("computed", "WARN  table kinds.computed: document may name large objects"),
        ("computed_key", "FAIL  table kinds.computed_key: has a generated column in its primary key"),
        ("boxes", f"WARN  table kinds.boxes: {UNSENT} is of a type that the connector leaves out"),
        ("by_index", "FAIL  table kinds.by_index: has REPLICA IDENTITY INDEX without id of the primary key"),
    ],
)
def test_what_the_log_does_not_tell_is_named(database: PostgresProcess, table: str, start: str) -> None:
    findings = lines(database, table)

    assert any(line.startswith(start) for line in findings), findings


@pytest.mark.parametrize(
    "table", ["deferrable", "unlogged", "a_view", "a_copy", "parent", "parts", "computed_key", "by_size"]
)
def test_what_the_log_does_not_tell_is_not_imported(
    database: PostgresProcess, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = statecast(["import", database.server.dsn, "--table", f"kinds.{table}", "--out", "nowhere"])

    assert status == 2
    assert f"kinds.{table} " in capsys.readouterr().err


def test_columns_that_the_connector_leaves_out_are_named_in_the_message(
    database: PostgresProcess, tmp_path: Path
) -> None:
    out = tmp_path / "team"
    assert statecast(["import", database.server.dsn, "--table", "kinds.boxes", "--out", str(out)]) == 0

    proto = (out / "messages/boxes.proto").read_text()
    assert "// Left out: size: of type kinds.size, which the connector leaves out." in proto
    assert "// Left out: stays: of type interval[], which the connector leaves out." in proto


def test_the_way_out_of_a_deferrable_key_is_sql(database: PostgresProcess) -> None:
    [line] = [line for line in lines(database, "deferrable") if "DEFERRABLE" in line]
    database.execute(line.rpartition(": ")[2])

    assert not [line for line in lines(database, "deferrable") if "DEFERRABLE" in line]


def test_a_publication_of_parts_of_a_table_fails(database: PostgresProcess) -> None:
    database.execute(
        "CREATE PUBLICATION kinds FOR TABLE kinds.small (id, day) WHERE (id > 1), kinds.parts, kinds.texts"
        " WITH (publish = 'insert, update, delete')"
    )
    try:
        findings = lines(database, "small", "parts", "texts")
    finally:
        database.execute("DROP PUBLICATION kinds")

    for start in (
        "FAIL  publication kinds: has rows of kinds.small alone WHERE (id > 1)",
        "FAIL  publication kinds: does not publish amount of kinds.small",
        "FAIL  publication kinds: has the partitions of kinds.parts under their own names, which no",
        "WARN  publication kinds: does not publish TRUNCATE",
    ):
        assert any(line.startswith(start) for line in findings), findings


def test_partitions_need_a_publication_by_their_root(database: PostgresProcess) -> None:
    assert any(line.startswith("FAIL  publish.via.partition.root: is not true") for line in lines(database, "parts"))
    assert not any(line.startswith("FAIL  publish.via") for line in lines(database, "small"))


def test_rows_that_are_hidden_from_the_role_are_told(database: PostgresProcess) -> None:
    database.execute(
        "CREATE ROLE seer LOGIN PASSWORD 'throw-away'; GRANT USAGE ON SCHEMA kinds TO seer;"
        "GRANT SELECT ON kinds.texts TO seer; ALTER TABLE kinds.texts ENABLE ROW LEVEL SECURITY"
    )
    url = f"postgres://seer:throw-away@127.0.0.1:{database.server.port}/statecast"
    findings = [str(each) for each in check_database(url, ["kinds.texts"], CONFIG)]

    assert any(line.startswith("FAIL  table kinds.texts: has row level security") for line in findings)


def test_a_slot_that_nobody_reads_fails_when_the_connector_runs(
    database: PostgresProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slot_checks, "WATCHED_S", 0.0)
    missing = lines(database, runs=True)
    database.execute("SELECT pg_create_logical_replication_slot('kinds', 'pgoutput')")
    try:
        unread = lines(database, runs=True)
    finally:
        database.execute("SELECT pg_drop_replication_slot('kinds')")

    for findings in (missing, unread):
        assert any(line.startswith("FAIL  slot kinds: the connector runs, and nobody reads it") for line in findings)
