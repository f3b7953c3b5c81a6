"""What the command writes: for people, or one JSON object a line."""

import json
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from statecast.query.v1 import query_pb2
from statecast.query.v1 import query_service_pb2 as query
from statecast.state.v1 import state_pb2
from statecast_client.change import Change


def fields(message: Message) -> dict[str, Any]:
    """Returns a message as the contract's JSON, with the names of its fields and with zeros."""
    return MessageToDict(message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)


def line(document: object) -> str:
    """Returns one line of JSON."""
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"))


def state_document(state: query_pb2.State, value: object) -> dict[str, Any]:
    """Returns a state with its decoded value in the place of its payload."""
    document = fields(state)
    del document["payload"]
    return {**document, "value": value}


def key_text(key: state_pb2.StateKey, separator: str) -> str:
    """Returns a key as the command takes it."""
    return separator.join((key.group, key.sort, key.member)) if key.member else key.group


def value_text(answer: query.GetStateResponse, value: object, separator: str) -> str:
    """Returns a value for people: where it is from, and its fields below."""
    state, freshness = answer.state, answer.freshness
    committed = f"  committed {state.commit_time.ToJsonString()}" if state.HasField("commit_time") else ""
    by = f"{freshness.answered_by}{' (forwarded)' if freshness.forwarded else ''}"
    return (
        f"{key_text(state.key, separator)}  {position_text(state.position)}{committed}"
        f"  lag {freshness.lag_ms} ms  by {by}\n{json.dumps(value, ensure_ascii=False, indent=2)}"
    )


def row_text(state: query_pb2.State, value: object, separator: str) -> str:
    """Returns a row of a scan for people."""
    return f"{key_text(state.key, separator)}  {line(value)}"


def change_text(change: Change, value: object, separator: str) -> str:
    """Returns a change for people."""
    gone = "deleted" if change.absence and change.absence.deleted else "has no value"
    what = gone if change.state is None else line(value)
    return f"{key_text(change.key, separator)}  {position_text(change.position)}  {what}"


def position_text(position: state_pb2.Position) -> str:
    """Returns a position for people."""
    return f"@{position.epoch}/{position.offset}"


def shards_text(listing: query.ListShardsResponse) -> list[str]:
    """Returns the shard map as a table, a line for each replica."""
    rows = [("STORE", "PARTITION", "RANK", "INSTANCE", "ADDRESS", "SERVING", "LAG_RECORDS", "LAG_MS")]
    for shard in listing.shards:
        for replica in shard.replicas:
            known = replica.lag_ms >= 0
            rows.append(
                (
                    shard.store,
                    str(shard.partition),
                    str(replica.rank),
                    replica.instance,
                    replica.address,
                    "yes" if replica.serving else "no",
                    str(replica.lag_records) if known else "?",
                    str(replica.lag_ms) if known else "?",
                )
            )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
