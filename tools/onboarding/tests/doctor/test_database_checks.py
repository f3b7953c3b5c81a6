"""Problems that are found in a real PostgreSQL."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from statecast_onboarding.doctor.database_checks import check_database
from testkit.postgres import PostgresProcess, running_postgres

CONFIG = {"slot.name": "team", "publication.name": "team", "publication.autocreate.mode": "filtered"}


def lines(
    database: PostgresProcess,
    *tables: str,
    config: Mapping[str, str] = CONFIG,
    url: str | None = None,
) -> list[str]:
    return [str(each) for each in check_database(url or database.server.dsn, tables, config)]


def test_a_table_with_its_full_replica_identity_is_right(database: PostgresProcess) -> None:
    findings = lines(database, "stock.levels")

    assert "ok    table stock.levels: has REPLICA IDENTITY FULL" in findings
    assert "ok    wal_level: is logical" in findings
    assert not [line for line in findings if line.startswith("FAIL")]


def test_the_default_replica_identity_is_warned_about_for_its_large_values_alone(database: PostgresProcess) -> None:
    findings = lines(database, "public.shipments")

    [line] = [line for line in findings if "REPLICA IDENTITY" in line]
    assert line.startswith(
        "WARN  table public.shipments: has REPLICA IDENTITY DEFAULT: an update leaves out large values"
    )
    assert line.endswith("; ALTER TABLE public.shipments REPLICA IDENTITY FULL")
    assert not [line for line in findings if line.startswith("FAIL")]


def test_sql_has_names_with_capitals_in_quotes(database: PostgresProcess) -> None:
    [line] = [line for line in lines(database, "public.Order Items") if "REPLICA IDENTITY" in line]

    assert line.endswith('ALTER TABLE public."Order Items" REPLICA IDENTITY FULL')


def test_what_is_missing_is_named(database: PostgresProcess) -> None:
    findings = lines(database, "public.notes", "public.nothing")

    assert any(line.startswith("FAIL  table public.notes: has no primary key") for line in findings)
    assert any(line.startswith("FAIL  table public.nothing: does not exist") for line in findings)


@pytest.fixture
def publication(database: PostgresProcess) -> Iterator[None]:
    database.execute("CREATE PUBLICATION team FOR TABLE stock.levels WITH (publish = 'insert, update')")
    yield
    database.execute("DROP PUBLICATION team")


def test_a_publication_must_have_the_tables_and_all_operations(database: PostgresProcess, publication: None) -> None:
    fixed = lines(
        database, "stock.levels", "public.shipments", config={**CONFIG, "publication.autocreate.mode": "disabled"}
    )

    assert any(line.startswith("FAIL  publication team: does not publish delete") for line in fixed)
    assert any(
        "does not have public.shipments, so its changes never arrive: ALTER PUBLICATION team ADD TABLE" in line
        for line in fixed
    )
    assert not any("does not have" in line for line in lines(database, "public.shipments"))


def test_a_publication_that_nobody_makes_is_missing(database: PostgresProcess) -> None:
    findings = lines(database, "stock.levels", config={**CONFIG, "publication.autocreate.mode": "disabled"})

    assert any("FAIL  publication team: is missing" in line and "FOR TABLE stock.levels" in line for line in findings)


def test_a_slot_that_nobody_reads_is_told(database: PostgresProcess) -> None:
    database.execute("SELECT pg_create_logical_replication_slot('team', 'pgoutput')")
    try:
        findings = lines(database, "stock.levels")
    finally:
        database.execute("SELECT pg_drop_replication_slot('team')")

    assert any(line.startswith("WARN  slot team: nobody reads it") for line in findings)


def test_a_role_without_rights_is_told_what_it_lacks(database: PostgresProcess) -> None:
    database.execute("CREATE ROLE stranger LOGIN PASSWORD 'throw-away'")
    url = f"postgres://stranger:throw-away@127.0.0.1:{database.server.port}/statecast"
    findings = lines(database, "public.shipments", url=url)

    assert "FAIL  role: stranger may not replicate: ALTER ROLE stranger REPLICATION" in findings
    assert any("cannot be read by the role: GRANT SELECT ON public.shipments" in line for line in findings)
    assert any("is not owned by the role" in line for line in findings)


def test_a_database_that_does_not_answer_is_one_line(database: PostgresProcess) -> None:
    [line] = lines(database, "public.shipments", url="postgres://someone:throw-away@127.0.0.1:1/none")

    assert line.startswith("FAIL  database: PostgreSQL does not let us in")
    assert "throw-away" not in line


def test_a_server_without_logical_decoding_fails(tmp_path: Path) -> None:
    with running_postgres(tmp_path, wal_level="replica", max_replication_slots="0") as server:
        findings = lines(server)

    assert "FAIL  wal_level: is replica: set it to logical and restart PostgreSQL" in findings
    assert any(line.startswith("FAIL  max_replication_slots: no slot is free") for line in findings)


def test_tables_that_a_list_also_fits_are_told(database: PostgresProcess) -> None:
    config = {**CONFIG, "topic.prefix": "shop", "table.include.list": "public.order.*, stock.levels"}
    findings = lines(database, "stock.levels", config=config)

    [line] = [line for line in findings if "table.include.list" in line]
    assert line.startswith(
        "WARN  table.include.list: is public.order.*, stock.levels: it sends public.Order Items, public.order, "
    )
    assert not any("public.order" in line for line in findings if "table.include.list" not in line)
    assert any("table public.order_change" in line for line in lines(database, config=config))
    [broken] = [line for line in lines(database, config={**config, "table.include.list": "("}) if "expression" in line]
    assert broken.startswith("FAIL  table.include.list: has an entry that is not a regular expression")
