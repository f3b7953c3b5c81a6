"""Checks that a connector reads its slot: Connect says RUNNING also of one that fails again and again."""

import time
from collections.abc import Mapping

from statecast_onboarding.doctor.finding import Finding, fail, ok, warn
from statecast_onboarding.postgres_table import Connection

WATCHED_S = 12.0
"""For how long the slot is watched: Debezium tries again after 10 seconds by default."""
_APART_S = 0.5
_SLOT = """
SELECT s.active_pid AS reader, s.wal_status = 'lost' AS lost,
       pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn)) AS kept,
       EXISTS (SELECT FROM pg_stat_activity a WHERE a.datname = s.database AND a.application_name LIKE 'Debezium%%'
               AND a.backend_type = 'client backend' AND a.xact_start < now() - interval '1 second') AS snapshot
FROM pg_replication_slots s WHERE s.slot_name = %s
"""


def slot_of(config: Mapping[str, str]) -> str:
    """Returns the slot of the connector, Debezium's default included."""
    return config.get("slot.name", "debezium")


def check_unread(connection: Connection, config: Mapping[str, str]) -> Finding | None:
    """Finds a slot that nobody reads now, and how much of the log it keeps."""
    slot = connection.execute(_SLOT, [slot_of(config)]).fetchone()
    if slot is None or slot["reader"] is not None:
        return None
    text = f"nobody reads it, and it keeps {slot['kept']} of the log: start the connector"
    return warn(f"slot {slot_of(config)}", text)


def check_reader(connection: Connection, config: Mapping[str, str]) -> Finding:
    """Finds whether one session reads the slot of a connector that runs; takes WATCHED_S where none does."""
    subject, deadline = f"slot {slot_of(config)}", time.monotonic() + WATCHED_S
    readers: list[int | None] = []
    while True:
        slot = connection.execute(_SLOT, [slot_of(config)]).fetchone()
        readers.append(slot["reader"] if slot else None)
        if len(readers) > 1 and readers[-1] == readers[-2] is not None:
            return ok(subject, "is read")
        if slot and slot["lost"]:
            text = "has lost what it kept: drop it, and have the connector take its snapshot again"
            return fail(subject, f"{text}; raise max_slot_wal_keep_size")
        if slot and slot["snapshot"]:
            return warn(subject, "is not read yet: a snapshot runs; call this again after it")
        if time.monotonic() > deadline:
            return fail(subject, _unread(readers))
        time.sleep(_APART_S)


def _unread(readers: list[int | None]) -> str:
    text = "the connector runs, and nobody reads it, so no change of any table arrives"
    if any(readers):
        text = "its reader stops and starts over and over, so changes hardly arrive"
    return f"{text}: look into the log of Connect for the error that it tries again"
