"""Checks a table of PostgreSQL: its kind, key, rights, replica identity and columns."""

from collections.abc import Iterator, Mapping
from typing import Any

from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.doctor.publication_checks import publication_of
from statecast_onboarding.postgres_capture import Relation, find_relation, unsent_columns
from statecast_onboarding.postgres_table import Connection
from statecast_onboarding.table_names import sql_name

_TABLE = """
SELECT has_table_privilege(c.oid, 'SELECT') AS readable, pg_has_role(c.relowner, 'USAGE') AS owned,
       row_security_active(c.oid) AS hidden,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary) AS keyed,
       ARRAY(SELECT a.attname::text FROM pg_attribute a JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
             WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND NOT EXISTS (
               SELECT FROM pg_index r WHERE r.indrelid = c.oid AND r.indisreplident AND a.attnum = ANY (r.indkey)))
         AS outside_identity
FROM pg_class c WHERE c.oid = %s
"""
_COLUMNS = """
SELECT a.attname::text AS name, a.attgenerated <> '' AS generated, b.typname::text AS type,
       format_type(a.atttypid, a.atttypmod) AS declared,
       a.attlen = -1 AND a.attstorage <> 'p'
         AND NOT (b.typname = 'numeric' AND a.atttypmod BETWEEN 0 AND ((28 << 16) | 2047) + 4) AS large,
       EXISTS (SELECT FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey))
         AS of_key
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_MARKED = ("text", "varchar", "bpchar", "citext", "json", "jsonb", "xml", "bytea", "numeric", "tsvector", "hstore")
_MARKED_ARRAYS = ("_text", "_varchar", "_bpchar", "_json", "_jsonb", "_bytea", "_int4", "_int8", "_date", "_uuid")
MARKED = frozenset((*_MARKED, *_MARKED_ARRAYS))
"""Types for which the connector marks a large value that an update leaves as it is; for others it sends NULL."""
LARGE_OBJECTS = ("oid", "lo")


def check_table(connection: Connection, name: str, config: Mapping[str, str], published: bool) -> Iterator[Finding]:
    """Finds problems of a table, named as schema.table. `published`: the connector's publication is there."""
    subject, relation = f"table {name}", find_relation(connection, name)
    if relation is None:
        yield fail(subject, "does not exist, or is not visible to the role: correct its name, or grant USAGE")
        return
    yield from (fail(subject, text) for text in relation.obstacles)
    if not relation.stored:
        return
    if relation.partitioned:
        text = "has partitions: DETACH, DROP and TRUNCATE of one are not in the log, and its rows stay"
        yield warn(subject, f"{text}; DELETE them first")
    [table] = connection.execute(_TABLE, [relation.oid]).fetchall()
    yield from _access(name, table, config, published)
    columns = connection.execute(_COLUMNS, [relation.oid]).fetchall()
    unsent = unsent_columns(connection, relation.oid)
    yield from _columns(subject, columns, unsent)
    yield _identity(name, relation, table, [column for column in columns if column["name"] not in unsent])


def _access(name: str, table: Mapping[str, Any], config: Mapping[str, str], published: bool) -> Iterator[Finding]:
    subject = f"table {name}"
    if not table["keyed"]:
        yield fail(subject, "has no primary key: add one, as changes cannot be told apart without it")
    if not table["readable"]:
        yield fail(subject, f"cannot be read by the role: GRANT SELECT ON {sql_name(name)}")
    if table["hidden"]:
        text = "has row level security, which hides rows from the role: snapshots lack them"
        yield fail(subject, f"{text}; ALTER ROLE … BYPASSRLS")
    mode = config.get("publication.autocreate.mode", "all_tables")
    if mode != "disabled" and not published and not table["owned"]:
        text = "is not owned by the role, which therefore cannot publish it"
        todo = f"CREATE PUBLICATION {publication_of(config)} FOR TABLE {sql_name(name)} as its owner"
        yield fail(subject, f"{text}: {todo}")


def _columns(subject: str, columns: list[dict[str, Any]], unsent: Mapping[str, str]) -> Iterator[Finding]:
    generated = [column["name"] for column in columns if column["generated"]]
    if any(column["generated"] and column["of_key"] for column in columns):
        yield fail(subject, "has a generated column in its primary key, and it is not published: take another key")
    elif generated:
        text = "are generated, and changes do not have them though a snapshot does"
        yield warn(subject, f"{', '.join(generated)} {text}: leave them out of the message")
    if unsent:
        names = ", ".join(f"{column} ({type_})" for column, type_ in unsent.items())
        text = "of a type that the connector leaves out, so rows do not have it"
        yield warn(subject, f"{names} is {text}: keep it as jsonb, or in columns of other types")
    if objects := [column["name"] for column in columns if column["type"] in LARGE_OBJECTS]:
        text = "may name large objects, whose contents are not in the log"
        yield warn(subject, f"{', '.join(objects)} {text}: keep them as bytea")


def _identity(name: str, relation: Relation, table: Mapping[str, Any], columns: list[dict[str, Any]]) -> Finding:
    subject = f"table {name}"
    of = "each of its partitions" if relation.partitioned else sql_name(name)
    todo = f"ALTER TABLE {of} REPLICA IDENTITY FULL"
    has = f"has REPLICA IDENTITY {relation.identity.upper()}"
    if relation.identity == "full":
        return ok(subject, has)
    if relation.identity == "nothing":
        return fail(subject, f"{has}, so updates and deletes are refused: {todo}")
    if relation.identity == "index" and table["outside_identity"]:
        missing = ", ".join(table["outside_identity"])
        return fail(subject, f"{has} without {missing} of the primary key, so deletes do not name their row: {todo}")
    large = [column for column in columns if column["large"] and not column["generated"] and not column["of_key"]]
    if unmarked := [f"{column['name']} ({column['declared']})" for column in large if column["type"] not in MARKED]:
        text = "an update that leaves a large value as it is sends NULL for it, which nobody can tell from a real one"
        return fail(subject, f"{has}, and {', '.join(unmarked)}: {text}; {todo}")
    if large:
        names = ", ".join(column["name"] for column in large)
        text = f"an update leaves out large values that it does not change, of {names}"
        return warn(subject, f"{has}: {text}, and is a dead letter then; {todo}")
    return ok(subject, f"{has}, and no column takes large values")
