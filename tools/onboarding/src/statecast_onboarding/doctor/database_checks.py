"""What of a PostgreSQL will not work: its settings, the role, and the tables that are to be sent."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

import psycopg

from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.errors import UnreachableError
from statecast_onboarding.postgres_table import REPLICA_IDENTITIES, open_database, split_name, sql_name

_ROLE = """
SELECT rolname AS name, rolsuper OR rolreplication OR EXISTS (
  SELECT FROM pg_roles r WHERE r.rolname IN ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')
  AND pg_has_role(current_user, r.oid, 'MEMBER')) AS replicates
FROM pg_roles WHERE rolname = current_user
"""
_SLOTS = """
SELECT current_setting('max_replication_slots')::int - count(*) AS free,
       count(*) FILTER (WHERE slot_name = %s) AS ours FROM pg_replication_slots
"""
_RETAINED = """
SELECT pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) AS size
FROM pg_replication_slots WHERE slot_name = %s AND NOT active
"""
_TABLE = """
SELECT c.oid, c.relreplident AS identity, has_table_privilege(c.oid, 'SELECT') AS readable,
       pg_has_role(c.relowner, 'USAGE') AS owned,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS keyed
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p')
"""
_PUBLICATION = "SELECT pubinsert, pubupdate, pubdelete FROM pg_publication WHERE pubname = %s"
_PUBLISHED = "SELECT schemaname || '.' || tablename AS name FROM pg_publication_tables WHERE pubname = %s"

Connection = psycopg.Connection[dict[str, Any]]


def check_database(url: str, tables: Collection[str], config: Mapping[str, str]) -> Iterator[Finding]:
    """What will not work with `tables`, as schema.table. `config` is the connector's: publication and slot."""
    try:
        with open_database(url) as connection:
            yield from _server(connection, config)
            for name in tables:
                yield from _table(connection, name, config)
            yield from _publication(connection, tables, config)
    except (UnreachableError, psycopg.Error) as error:
        yield fail("database", f"{error}")


def _server(connection: Connection, config: Mapping[str, str]) -> Iterator[Finding]:
    level = _one(connection, "SELECT current_setting('wal_level') AS level")["level"]
    if level == "logical":
        yield ok("wal_level", "is logical")
    else:
        yield fail("wal_level", f"is {level}: set it to logical and restart PostgreSQL")
    role = _one(connection, _ROLE)
    if not role["replicates"]:
        yield fail("role", f"{role['name']} may not replicate: ALTER ROLE {role['name']} REPLICATION")
    slot = config.get("slot.name", "debezium")
    slots = _one(connection, _SLOTS, slot)
    if not slots["ours"] and slots["free"] < 1:
        yield fail("max_replication_slots", "no slot is free: drop one that nobody uses, or raise it and restart")
    if retained := connection.execute(_RETAINED, (slot,)).fetchone():
        yield warn(f"slot {slot}", f"nobody reads it, and it keeps {retained['size']} of the log: start the connector")
    if _one(connection, "SELECT current_setting('max_slot_wal_keep_size') AS size")["size"] == "-1":
        yield warn("max_slot_wal_keep_size", "is -1: while the connector is away the log fills the disk; set a limit")


def _table(connection: Connection, name: str, config: Mapping[str, str]) -> Iterator[Finding]:
    table = connection.execute(_TABLE, split_name(name)).fetchone()
    if table is None:
        yield fail(f"table {name}", "does not exist, or is not visible to the role: correct its name, or grant USAGE")
        return
    if not table["keyed"]:
        yield fail(f"table {name}", "has no primary key: add one, as changes cannot be told apart without it")
    if not table["readable"]:
        yield fail(f"table {name}", f"cannot be read by the role: GRANT SELECT ON {sql_name(name)}")
    mode = config.get("publication.autocreate.mode", "all_tables")
    exists = connection.execute(_PUBLICATION, (_publication_name(config),)).fetchone() is not None
    if mode != "disabled" and not exists and not table["owned"]:
        text = "is not owned by the role, which therefore cannot publish it"
        todo = f"CREATE PUBLICATION {_publication_name(config)} FOR TABLE {sql_name(name)} as its owner"
        yield fail(f"table {name}", f"{text}: {todo}")
    yield _identity(name, REPLICA_IDENTITIES[table["identity"]])


def _identity(name: str, identity: str) -> Finding:
    subject, todo = f"table {name}", f"ALTER TABLE {sql_name(name)} REPLICA IDENTITY FULL"
    if identity == "full":
        return ok(subject, "has REPLICA IDENTITY FULL")
    if identity == "nothing":
        return fail(subject, f"has REPLICA IDENTITY NOTHING, so updates and deletes are refused: {todo}")
    text = f"has REPLICA IDENTITY {identity.upper()}: an update leaves out large values that it does not change"
    return warn(subject, f"{text}, and is a dead letter then; {todo}")


def _publication_name(config: Mapping[str, str]) -> str:
    return config.get("publication.name", "dbz_publication")


def _publication(connection: Connection, tables: Collection[str], config: Mapping[str, str]) -> Iterator[Finding]:
    name, mode = _publication_name(config), config.get("publication.autocreate.mode", "all_tables")
    publication = connection.execute(_PUBLICATION, (name,)).fetchone()
    if publication is None:
        if mode == "disabled":
            names = ", ".join(map(sql_name, sorted(tables)))
            yield fail(f"publication {name}", f"is missing: CREATE PUBLICATION {name} FOR TABLE {names}")
        return
    missing = [word for word in ("insert", "update", "delete") if not publication[f"pub{word}"]]
    if missing:
        todo = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"
        yield fail(f"publication {name}", f"does not publish {', '.join(missing)}: {todo}")
    published = {str(row["name"]) for row in connection.execute(_PUBLISHED, (name,))}
    for table in sorted(set(tables) - published) if mode != "filtered" else ():
        todo = f"ALTER PUBLICATION {name} ADD TABLE {sql_name(table)}"
        yield fail(f"publication {name}", f"does not have {table}: {todo}")


def _one(connection: Connection, query: str, *parameters: object) -> dict[str, Any]:
    row = connection.execute(query.encode(), parameters or None).fetchone()
    assert row is not None  # noqa: S101  each of these queries has one row
    return row
