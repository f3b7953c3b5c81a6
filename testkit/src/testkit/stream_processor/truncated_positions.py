"""A table of open positions that is truncated at times, as Debezium sends its changes, and the plain model of it."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any, TypeAlias

from statecast.portfolio.v1.open_position_pb2 import OpenPosition
from statecast.portfolio.v1.share_holder_pb2 import ShareHolder
from testkit.stream_processor.changes import START
from testkit.stream_processor.model import read_fenced
from testkit.topics import Record

Row: TypeAlias = Mapping[str, Any]
Event: TypeAlias = Mapping[str, Any]
Held: TypeAlias = Mapping[str, tuple[str, int, int]]

POSITIONS = {
    "topic": "positions",
    "message": "statecast.portfolio.v1.OpenPositionChange",
    "format": "debezium-json",
    "key": "position_id",
}


def position(position_id: str, client: str = "a", amount: int = 1) -> Row:
    """Returns a row that matches the condition of us-share-holders."""
    return {"position_id": position_id, "client": client, "amount": amount, "exchange": "NASDAQ"}


def event(op: str, lsn: int, before: Row | None = None, after: Row | None = None, hours: float = 0.0) -> Event:
    """Returns a change as Debezium sends it; it was committed so many hours after START."""
    committed = round((START + timedelta(hours=hours)).timestamp() * 1_000_000)
    source = {"lsn": lsn, "ts_us": committed, "snapshot": "false", "table": "positions"}
    return {"op": op, "before": before, "after": after, "source": source, "ts_us": committed}


def created(lsn: int, position_id: str, client: str = "a", amount: int = 1) -> Event:
    """Returns an INSERT."""
    return event("c", lsn, after=position(position_id, client, amount))


def truncated(lsn: int, hours: float = 0.0) -> Event:
    """Returns a TRUNCATE."""
    return event("t", lsn, hours=hours)


def read_by_snapshot(end_of_log: int, position_id: str) -> Event:
    """Returns a row that a snapshot has read when the log ended there."""
    return event("r", end_of_log, after=position(position_id))


def encoded(events: Iterable[Event]) -> list[bytes]:
    """Returns the values of the events' records."""
    return [json.dumps(each).encode() for each in events]


def history(chance: Random, full: bool) -> list[Event]:
    """Changes of a few positions: moves, rows that stop to match, deletes, and truncations.

    `full` is the table's REPLICA IDENTITY; without it the connector knows the key alone of a row before a change.
    """
    rows: dict[str, Row] = {}
    events = []
    for step in range(1, 121):
        position_id = f"p-{chance.randrange(8)}"
        before = rows.pop(position_id, None)
        known = before if full else None
        if chance.random() < 0.04:
            rows.clear()
            events.append(truncated(step * 8))
        elif before is None or chance.random() > 0.2:
            row = {**position(position_id, chance.choice("abc"), chance.randrange(1, 4))}
            row["exchange"] = chance.choice(["NASDAQ", "NASDAQ", "NASDAQ", "LON"])
            rows[position_id] = row
            events.append(event("c" if before is None else "u", step * 8, known, row))
        else:
            made_up = {"position_id": position_id, "client": "", "amount": 0, "exchange": ""}
            events.append(event("d", step * 8, known or made_up, None))
    return events


def left(events: Sequence[Event]) -> list[Row]:
    """Returns the rows that the table has in the end."""
    rows: dict[str, Row] = {}
    for each in events:
        row = each["after"] or each["before"]
        if row is None:
            rows.clear()
        elif each["after"] is None:
            rows.pop(row["position_id"], None)
        else:
            rows[row["position_id"]] = row
    return list(rows.values())


def partitioned(events: Sequence[Event], chance: Random) -> list[list[Event]]:
    """Makes two partitions of a topic: a row's changes are on one, some twice in a row; truncations are on any."""
    partitions: list[list[Event]] = [[], []]
    for each in events:
        row = each["after"] or each["before"]
        partition = partitions[chance.randrange(2) if row is None else int(row["position_id"][-1]) % 2]
        partition.append(each)
        if chance.random() < 0.05:
            partition += partition[-5:]
    return partitions


def read(partitions: Sequence[Sequence[Sequence[Event]]], chance: Random) -> list[Sequence[Event]]:
    """Returns the pieces of the partitions as a reader may get them: each partition in order, one ahead at times."""
    rest = [list(pieces) for pieces in partitions]
    batches: list[Sequence[Event]] = []
    while any(rest):
        batches.append(chance.choice([pieces for pieces in rest if pieces]).pop(0))
    return batches


def held(records: Iterable[Record], shape: str) -> Held:
    """Returns the state of a reader with the fence, by key: client, number of positions (1 for a row) and shares."""
    states = read_fenced(records)
    if shape == "aggregate":
        groups = {key: ShareHolder.FromString(state.payload) for key, state in states.items()}
        return {key: (group.client, group.positions, group.shares) for key, group in groups.items()}
    rows = {key: OpenPosition.FromString(state.payload) for key, state in states.items()}
    return {key: (row.client, 1, row.amount) for key, row in rows.items()}


def of_rows(rows: Iterable[Row], shape: str) -> Held:
    """Returns the expected state of the topic for these rows."""
    matching = [row for row in rows if row["exchange"] == "NASDAQ"]
    if shape == "latest":
        return {row["position_id"]: (row["client"], 1, row["amount"]) for row in matching}
    if shape == "members":
        keys = (f"{row['client']}\0{row['amount']:019}\0{row['position_id']}" for row in matching)
        return {key: (row["client"], 1, row["amount"]) for key, row in zip(keys, matching, strict=True)}
    sums: dict[str, tuple[str, int, int]] = defaultdict(lambda: ("", 0, 0))
    for row in matching:
        _, count, shares = sums[row["client"]]
        sums[row["client"]] = row["client"], count + 1, shares + row["amount"]
    return sums
