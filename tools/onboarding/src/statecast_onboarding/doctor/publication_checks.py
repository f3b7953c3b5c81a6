"""Checks that PostgreSQL publishes the tables, with all rows, columns and operations."""

from collections.abc import Collection, Iterator, Mapping

from statecast_onboarding.connector_file import VIA_ROOT
from statecast_onboarding.doctor.finding import Finding, fail, warn
from statecast_onboarding.postgres_table import Connection
from statecast_onboarding.table_names import split_name, sql_name

_PUBLICATION = """
SELECT pubinsert, pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication WHERE pubname = %s
"""
_PUBLISHED = "SELECT schemaname || '.' || tablename AS name FROM pg_publication_tables WHERE pubname = %s"
_PARTS = """
SELECT p.schemaname || '.' || p.tablename AS name, p.rowfilter,
       ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
             JOIN pg_namespace n ON n.oid = c.relnamespace
             WHERE n.nspname = p.schemaname AND c.relname = p.tablename AND a.attnum > 0 AND NOT a.attisdropped
             AND a.attgenerated = '' AND a.attname <> ALL (p.attnames) ORDER BY a.attnum) AS missing
FROM pg_publication_tables p WHERE p.pubname = %s
"""
_ROOTS = """
SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'p'
"""
_WITH_PARTS = 150_000
"""The version of PostgreSQL that first publishes parts of a table."""


def publication_of(config: Mapping[str, str]) -> str:
    """Returns the publication of the connector, Debezium's default included."""
    return config.get("publication.name", "dbz_publication")


def publication_exists(connection: Connection, config: Mapping[str, str]) -> bool:
    return connection.execute(_PUBLICATION, [publication_of(config)]).fetchone() is not None


def check_publication(
    connection: Connection, tables: Collection[str], config: Mapping[str, str], runs: bool
) -> Iterator[Finding]:
    """Finds rows, columns and operations of `tables`, as schema.table, that the publication leaves out."""
    name, mode = publication_of(config), config.get("publication.autocreate.mode", "all_tables")
    subject = f"publication {name}"
    publication = connection.execute(_PUBLICATION, [name]).fetchone()
    partitioned = _partitioned(connection) & set(tables)
    if publication is None:
        if partitioned and config.get(VIA_ROOT) != "true":
            names = ", ".join(sorted(partitioned))
            yield fail(VIA_ROOT, f"is not true: changes of partitions come under other names than {names}; set it")
        if mode in ("disabled", "no_tables") or runs:
            names = ", ".join(map(sql_name, sorted(tables)))
            todo = f"CREATE PUBLICATION {name} FOR TABLE {names} WITH (publish_via_partition_root = true)"
            yield fail(subject, f"is missing: {todo}")
        return
    missing = [word for word in ("insert", "update", "delete") if not publication[f"pub{word}"]]
    todo = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate')"
    if missing:
        yield fail(subject, f"does not publish {', '.join(missing)}: {todo}")
    if not publication["pubtruncate"]:
        yield warn(subject, f"does not publish TRUNCATE, whose rows stay: {todo}")
    if partitioned and not publication["pubviaroot"]:
        text = f"has the partitions of {', '.join(sorted(partitioned))} under their own names"
        todo = f"ALTER PUBLICATION {name} SET (publish_via_partition_root = true)"
        yield fail(
            subject, f"{text}, which no pipeline reads, and TRUNCATE of one can end the connector for good: {todo}"
        )
    if mode != "filtered" or runs:
        yield from _tables(connection, name, set(tables) - (set() if publication["pubviaroot"] else partitioned))
    yield from _parts(connection, name, tables)


def _partitioned(connection: Connection) -> set[str]:
    return {str(row["name"]) for row in connection.execute(_ROOTS)}


def _tables(connection: Connection, name: str, tables: Collection[str]) -> Iterator[Finding]:
    published = {str(row["name"]) for row in connection.execute(_PUBLISHED, [name])}
    for table in sorted(set(tables) - published):
        todo = f"ALTER PUBLICATION {name} ADD TABLE {sql_name(table)}"
        yield fail(f"publication {name}", f"does not have {table}, so its changes never arrive: {todo}")


def _parts(connection: Connection, name: str, tables: Collection[str]) -> Iterator[Finding]:
    if connection.info.server_version < _WITH_PARTS:
        return
    for row in connection.execute(_PARTS, [name]):
        if row["name"] not in {".".join(split_name(each)) for each in tables}:
            continue
        todo = f"ALTER PUBLICATION {name} SET TABLE with all of its tables, and neither WHERE nor columns"
        if row["rowfilter"]:
            yield fail(
                f"publication {name}", f"has rows of {row['name']} alone WHERE {row['rowfilter']}: others stay; {todo}"
            )
        if row["missing"]:
            columns = ", ".join(row["missing"])
            yield fail(f"publication {name}", f"does not publish {columns} of {row['name']}: they are empty; {todo}")
