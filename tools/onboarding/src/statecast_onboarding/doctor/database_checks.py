"""Checks a PostgreSQL: its settings, the role, the slot, and the tables that are to be sent."""

import re
from collections.abc import Collection, Iterator, Mapping

import psycopg

from statecast_onboarding.connector_file import TABLES, include_entries
from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.doctor.publication_checks import check_publication, publication_exists
from statecast_onboarding.doctor.slot_checks import check_reader, check_unread, slot_of
from statecast_onboarding.doctor.table_checks import check_table
from statecast_onboarding.errors import UnreachableError
from statecast_onboarding.postgres_table import Connection, open_database

MAX_NAMED = 5

_LEVEL = "SELECT current_setting('wal_level') AS level"
_ROLE = """
SELECT rolname AS name, rolsuper OR rolreplication OR EXISTS (
  SELECT FROM pg_roles r WHERE r.rolname IN ('rds_replication', 'cloudsqlsuperuser', 'azure_pg_admin')
  AND pg_has_role(current_user, r.oid, 'MEMBER')) AS replicates
FROM pg_roles WHERE rolname = current_user
"""
_TABLES = """
SELECT n.nspname || '.' || c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence = 'p'
AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1
"""
_SLOTS = """
SELECT current_setting('max_replication_slots')::int - count(*) AS free,
       count(*) FILTER (WHERE slot_name = %s) AS ours,
       current_setting('max_slot_wal_keep_size') AS kept FROM pg_replication_slots
"""


def check_database(
    url: str, tables: Collection[str], config: Mapping[str, str], runs: bool = False
) -> Iterator[Finding]:
    """Finds problems of `tables`, as schema.table; without any, of those that the connector sends.

    `config` is the connector's: publication and slot. When it `runs`, somebody must read the slot.
    """
    try:
        with open_database(url) as connection:
            yield from _server(connection, config)
            if runs:
                yield check_reader(connection, config)
            elif unread := check_unread(connection, config):
                yield unread
            sent = _sent_tables(connection, config)
            yield from _unread(sent, tables, config)
            published, named = publication_exists(connection, config), tables or sent
            for name in named:
                yield from check_table(connection, name, config, published)
            yield from check_publication(connection, named, config, runs)
    except (UnreachableError, psycopg.Error) as error:
        yield fail("database", f"{error}")
    except re.error as error:
        yield fail(TABLES, f"has an entry that is not a regular expression: {error}")


def _sent_tables(connection: Connection, config: Mapping[str, str]) -> list[str]:
    """Returns the tables of the database that the connector's list fits. Its entries are regular expressions."""
    if "topic.prefix" not in config:
        return []
    entries = [re.compile(entry, re.IGNORECASE) for entry in include_entries(config)]
    names = [str(row["name"]) for row in connection.execute(_TABLES)]
    return [name for name in names if not entries or any(entry.fullmatch(name) for entry in entries)]


def _unread(sent: Collection[str], tables: Collection[str], config: Mapping[str, str]) -> Iterator[Finding]:
    """Finds tables that the connector sends, and nobody reads."""
    if unread := sorted(set(sent) - set(tables)) if tables else []:
        some = ", ".join(unread[:MAX_NAMED]) + (f" and {len(unread) - MAX_NAMED} more" if unread[MAX_NAMED:] else "")
        text = f"is {config.get(TABLES, 'missing')}: it sends {some} too, and waits for ever where a topic is missing"
        yield warn(TABLES, f"{text}; name the tables that pipelines read")


def _server(connection: Connection, config: Mapping[str, str]) -> Iterator[Finding]:
    [level] = connection.execute(_LEVEL).fetchall()
    if level["level"] == "logical":
        yield ok("wal_level", "is logical")
    else:
        yield fail("wal_level", f"is {level['level']}: set it to logical and restart PostgreSQL")
    [role] = connection.execute(_ROLE).fetchall()
    if not role["replicates"]:
        yield fail("role", f"{role['name']} may not replicate: ALTER ROLE {role['name']} REPLICATION")
    [slots] = connection.execute(_SLOTS, [slot_of(config)]).fetchall()
    if not slots["ours"] and slots["free"] < 1:
        yield fail("max_replication_slots", "no slot is free: drop one that nobody uses, or raise it and restart")
    if slots["kept"] == "-1":
        yield warn("max_slot_wal_keep_size", "is -1: while the connector is away the log fills the disk; set a limit")
