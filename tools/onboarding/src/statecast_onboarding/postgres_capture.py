"""Finds tables and columns of a PostgreSQL with changes that do not arrive, by its catalogue."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

from statecast_onboarding.table_names import split_name, sql_name

REPLICA_IDENTITIES = {"d": "default", "f": "full", "i": "index", "n": "nothing"}
_UNSENT = frozenset(
    (
        "name",
        "pg_lsn",
        "xid",
        "xid8",
        "tid",
        "jsonpath",
        "tsquery",
        "txid_snapshot",
        "pg_snapshot",
        "regclass",
        "regtype",
    )
)
"""Types for which Debezium's connector has no form: it leaves such columns out, or sends NULL."""
_UNSENT_IN_ARRAYS = _UNSENT | frozenset(
    ("interval", "money", "xml", "bit", "bit varying", "point", "line", "lseg", "box", "path", "polygon", "circle")
)
_WEAKEST = "nidf"
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "c": "a type"}

_TYPES = """
SELECT a.attname AS name, format_type(b.oid, NULL) || CASE WHEN a.attndims > 1 THEN '[]' ELSE '' END AS type,
       a.attndims > 1 OR EXISTS (SELECT FROM pg_type e WHERE e.oid IN (b.oid, b.typelem)
               AND (e.typtype IN ('c', 'm') OR e.typtype = 'd' AND e.oid = b.typelem)) AS formless
FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
WHERE a.attrelid = %s AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
"""Composites, multiranges, arrays of domains and of arrays have no form either."""
_RELATION = """
WITH named AS (
  SELECT c.* FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname = %s AND c.relname = %s AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S', 'c')
), leaves AS (
  SELECT l.* FROM named, pg_partition_tree(named.oid) t JOIN pg_class l ON l.oid = t.relid
  WHERE named.relkind = 'p' AND t.isleaf
)
SELECT c.oid, c.relkind::text AS kind, c.relpersistence::text AS persistence,
       ARRAY(SELECT l.oid::regclass::text FROM leaves l WHERE l.relpersistence = 'u' OR l.relkind <> 'r' ORDER BY 1)
         AS unlogged_leaves,
       ARRAY(SELECT i.inhrelid::regclass::text FROM pg_inherits i WHERE i.inhparent = c.oid AND c.relkind = 'r'
             ORDER BY 1) AS children,
       coalesce((SELECT string_agg(DISTINCT l.relreplident::text, '') FROM leaves l), c.relreplident::text)
         AS identities,
       p.conname AS key, coalesce(p.condeferrable, false) AS deferrable,
       ARRAY(SELECT quote_ident(a.attname) FROM unnest(p.conkey) WITH ORDINALITY AS k(number, place)
             JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number ORDER BY k.place) AS key_columns
FROM named c LEFT JOIN pg_constraint p ON p.conrelid = c.oid AND p.contype = 'p'
"""


@dataclass(frozen=True)
class Relation:
    """A table, a view or the like, as PostgreSQL's catalogue has it."""

    oid: int
    identity: str
    """The replica identity, `default`, `full`, `index` or `nothing`; of partitions the weakest."""
    partitioned: bool
    stored: bool
    """Whether it has rows of its own, as no view has."""
    obstacles: tuple[str, ...]
    """Why its changes do not arrive, or not as they were made: each ends with the remedy."""


def find_relation(connection: "psycopg.Connection[dict[str, Any]]", name: str) -> Relation | None:
    """Returns the table that `name` names as `schema.table`, or in `public`."""
    row = connection.execute(_RELATION, split_name(name)).fetchone()
    if row is None:
        return None
    identity = min(row["identities"], key=_WEAKEST.index)
    obstacles = tuple(_obstacles(row, sql_name(name)))
    return Relation(row["oid"], REPLICA_IDENTITIES[identity], row["kind"] == "p", row["kind"] in "rp", obstacles)


def unsent_columns(connection: "psycopg.Connection[dict[str, Any]]", oid: int) -> dict[str, str]:
    """Returns the columns of a table that the connector leaves out, or sends as NULL, each with its type."""
    rows = connection.execute(_TYPES, [oid])
    return {row["name"]: row["type"] for row in rows if row["formless"] or not _has_form(row["type"])}


def _has_form(type_name: str) -> bool:
    name = type_name.removesuffix("[]")
    return name not in (_UNSENT if name == type_name else _UNSENT_IN_ARRAYS)


def _obstacles(row: dict[str, Any], table: str) -> Sequence[str]:
    if row["kind"] not in "rp":
        return [f"is {_KINDS[row['kind']]}, and the log has changes of tables alone: take the tables that it reads"]
    found = []
    if row["persistence"] == "t":
        found.append("is temporary, and the log has no changes of it: make it a table that stays")
    if row["persistence"] == "u":
        found.append(f"is UNLOGGED, and the log has no changes of it: ALTER TABLE {table} SET LOGGED")
    if leaves := row["unlogged_leaves"]:
        todo = f"ALTER TABLE {leaves[0]} SET LOGGED, or detach it"
        found.append(
            f"has partitions that are UNLOGGED or elsewhere, {', '.join(leaves)}, and no change of them: {todo}"
        )
    if children := row["children"]:
        text = f"is inherited by {', '.join(children)}, and their rows do not come under its name"
        found.append(f"{text}: take each of these tables, or make it PARTITION BY")
    if row["deferrable"]:
        key = f"DROP CONSTRAINT {row['key']}, ADD PRIMARY KEY ({', '.join(row['key_columns'])})"
        text = "has a DEFERRABLE primary key: one statement can move keys over each other, in an order that loses rows"
        found.append(f"{text}: ALTER TABLE {table} {key}")
    return found
