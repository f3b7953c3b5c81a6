"""Encodes a change as JSON, as Debezium's PostgreSQL connector does."""

import json
from collections.abc import Callable

from google.protobuf.timestamp_pb2 import Timestamp

from statecast.change.v1.change_pb2 import Operation
from statecast.orders.v1.order_pb2 import Order, OrderChange, OrderStatus

OPS = {
    Operation.OPERATION_CREATE: "c",
    Operation.OPERATION_UPDATE: "u",
    Operation.OPERATION_DELETE: "d",
    Operation.OPERATION_SNAPSHOT: "r",
}


def debezium(change: OrderChange, **replaced: object) -> bytes:
    """Returns the change's JSON, with columns of its row after replaced."""
    source = change.source
    envelope = {
        "op": OPS[change.operation],
        "before": columns(change.before) if change.HasField("before") else None,
        "after": {**columns(change.after), **replaced} if change.HasField("after") else None,
        "source": {
            "connector": "postgresql",
            "lsn": source.log_sequence_number,
            "txId": source.transaction_id or None,
            "ts_ms": source.commit_time.ToMilliseconds(),
            "snapshot": "true" if source.snapshot else "false",
            "table": source.table,
        },
        "ts_ms": source.commit_time.ToMilliseconds(),
    }
    return json.dumps(envelope).encode()


def columns(row: Order) -> dict[str, object]:
    """Returns the row as a table has it: the lines as JSON, the status without prefix, moments by the microsecond."""
    values: dict[str, object] = {field.name: getattr(row, field.name) for field in row.DESCRIPTOR.fields}
    lines = [{field.name: getattr(line, field.name) for field in line.DESCRIPTOR.fields} for line in row.items]
    micros: Callable[[Timestamp], int] = Timestamp.ToMicroseconds
    return {
        **values,
        "status": OrderStatus.Name(row.status).removeprefix("ORDER_STATUS_").lower(),
        "items": json.dumps(lines),
        "placed_at": micros(row.placed_at),
        "updated_at": micros(row.updated_at),
        "estimated_delivery": row.estimated_delivery or None,
        "tracking_number": row.tracking_number or None,
    }
