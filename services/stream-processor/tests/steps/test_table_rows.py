"""Reads the records of a table as changes, and sets aside those that are none."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest
from pyspark.sql import Row

from statecast.state.v1.state_pb2 import StateRecord
from testkit.stream_processor.changes import change, order
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch, Sent

WRITTEN = datetime(2024, 8, 28, 12, tzinfo=UTC)
HEADER = "statecast-state-record"
Read = Callable[..., list[Row]]

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def read(shipped: PipelineOf, batch: OneBatch) -> Read:
    """The checked changes of records, each (key, value) or (key, value, the headers of a tombstone)."""

    def run(name: str, records: Sequence[Sent], values: str) -> list[Row]:
        source = {"topic": "t", "message": "statecast.orders.v1.Order", "format": "table", "values": values}
        return batch.checked(shipped(name, source=source), batch.records(*records, time=WRITTEN))

    return run


def state(payload: bytes = b"", source: bool = True) -> bytes:
    whole = StateRecord(epoch=3, sequence=9, payload=payload)
    if source:
        whole.source.CopyFrom(change(None, order(), 7).source)
    return whole.SerializeToString()


def test_a_state_record_has_its_place_and_its_source(read: Read) -> None:
    row = order().SerializeToString()

    set_, deleted = read(
        "orders-by-key", [(b"order-1", state(row)), (b"order-1", None, {HEADER: state()})], "state-record"
    )

    assert [(each.epoch, each.sequence, each.problem) for each in (set_, deleted)] == [(3, 9, None)] * 2
    assert (set_.after.order_id, bytes(set_.payload), set_.change.operation) == ("order-1", row, "OPERATION_UPDATE")
    assert (deleted.after, deleted.change.operation) == (None, "OPERATION_DELETE")
    assert deleted.change.source.log_sequence_number == 7


def test_other_values_have_the_place_and_the_time_of_their_record(read: Read) -> None:
    row = b'{"order_id": "order-1", "items": [{"item_id": "i", "quantity": 2}], "total_cents": 7, "x": 1}'

    set_, deleted = read("orders-by-key", [(b"order-1", row), (b"order-1", None)], "json")

    assert [(each.sequence, each.problem, each.after is None) for each in (set_, deleted)] == [
        (0, None, False),
        (1, None, True),
    ]
    assert (set_.after["items"][0].quantity, set_.after.total_cents) == (2, 7)
    assert set_.change.source.commit_time == WRITTEN.replace(tzinfo=None)


ROW = order().SerializeToString()
MEMBERS = "the record's key is not keep.members.key, order_id: two rows could be one; say source.key if "


NO_ROWS: dict[tuple[str, str], list[tuple[tuple[bytes | None, bytes | None], str]]] = {
    ("orders-by-key", "protobuf"): [
        ((None, ROW), "the record has no key, which tells the rows of a table apart"),
        ((b"\xff", ROW), "the record's key is no UTF-8"),
        ((b"order-1", b"\xff"), "not a statecast.orders.v1.Order: "),
    ],
    ("orders-by-customer", "protobuf"): [((b"customer-1\0order-1", ROW), MEMBERS)],
    ("orders-by-key", "state-record"): [
        ((b"order-1", None), f"the value is null, and no header {HEADER} says"),
        ((b"order-1", b"\xff"), "not a statecast.state.v1.StateRecord: "),
        ((b"order-1", state(b"\xff")), "payload: not a statecast.orders.v1.Order: "),
        ((b"order-1", state(ROW, source=False)), "the statecast.state.v1.StateR"),
    ],
    ("orders-by-key", "json"): [
        ((b"order-1", b"null"), "the value is no JSON object"),
        ((b"order-1", b'{"items": {}}'), "items is no JSON that fits it"),
        ((b"order-1", b'{"total_cents": "x"}'), "total_cents"),
    ],
}
"""Records that are no rows, and how their reasons begin, by the name of a pipeline and the form of its values."""


@pytest.mark.parametrize(("name", "values"), NO_ROWS)
def test_what_is_no_row_of_a_table_is_told(read: Read, name: str, values: str) -> None:
    records = NO_ROWS[name, values]

    for line, (_, problem) in zip(read(name, [record for record, _ in records], values), records, strict=True):
        assert line.problem.startswith(problem)
