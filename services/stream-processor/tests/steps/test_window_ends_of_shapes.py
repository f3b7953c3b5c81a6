"""Windows that end, of sums and of sets, over changes and over plain events."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from pyspark.sql import SparkSession

from statecast.descriptors import MessageTypes
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from testkit.stream_processor.changes import INVOICE_ROWS
from testkit.stream_processor.invoice_events import invoice_events
from testkit.stream_processor.invoice_windows import EACH_QUARTER, invoice_history
from testkit.stream_processor.micro_batches import MicroBatches, PipelineOf, pieces
from testkit.stream_processor.model import read_fenced
from testkit.topics import Record

pytestmark = pytest.mark.timeout(900)

KEEP = timedelta(hours=3)
PROTO = """
syntax = "proto3";
package shop.v1;
import "google/protobuf/timestamp.proto";
message StoreHour {
  string store_id = 1;
  google.protobuf.Timestamp window_start = 2;
  google.protobuf.Timestamp window_end = 3;
  int64 invoices = 4;
  int64 amount_cents = 5;
  repeated string cards = 6;
  bool cards_truncated = 7;
}
"""
SUMS = {"invoices": "count(*)", "amount_cents": "sum(total_amount_cents)"}
SETS = {"invoices": "count(*)", "cards": "collect_set(customer_card_no, 2)"}
EVENTS = {"topic": "invoices", "message": "statecast.sales.v1.Invoice", "format": "events"}
Batches = Sequence[Sequence[Record]]


@pytest.fixture
def contract(tmp_path: Path) -> Contract:
    """The contract with a message for sets in windows."""
    (tmp_path / "shop.proto").write_text(PROTO)
    return Contract(MessageTypes.read(tmp_path).descriptor_set)


@pytest.fixture
def hourly(contract: Contract) -> PipelineOf:
    """Makes a pipeline of the sales of each store in windows that overlap."""

    def make(source: dict[str, Any], aggregate: dict[str, str], **window: str) -> Pipeline:
        content = {
            "name": "hourly",
            "source": source,
            "group_by": "store_id",
            "window": {**EACH_QUARTER, **window},
            "keep": {"aggregate": aggregate},
            "sink": {"topic": "hourly", "message": "shop.v1.StoreHour"},
        }
        return shapes.check("hourly.yaml", PipelineFile.model_validate(content), contract)

    return make


def of_events() -> tuple[Batches, datetime]:
    """Invoices as events in batches, and the time of the last one."""
    events = invoice_events(Random(5), events=90)
    batches = [[each.record("protobuf") for each in batch] for batch in [*pieces(events[:-1], 3), events[-1:]]]
    return batches, datetime.fromtimestamp(events[-1].time_ms / 1000, UTC)


def of_changes() -> tuple[Batches, datetime]:
    """Changes of invoices in batches, and the time of the last commit."""
    changes = invoice_history(Random(5))
    batches = [
        [Record(0, each.source.log_sequence_number, b"", each.SerializeToString(), {}) for each in batch]
        for batch in [*pieces(changes[:-1], 3), changes[-1:]]
    ]
    return batches, changes[-1].source.commit_time.ToDatetime(UTC)


@pytest.mark.parametrize(
    ("source", "history", "aggregate"),
    [
        pytest.param(EVENTS, of_events, SUMS, id="sums-of-events", marks=pytest.mark.long),
        pytest.param(EVENTS, of_events, SETS, id="sets-of-events", marks=pytest.mark.long),
        pytest.param(INVOICE_ROWS, of_changes, SETS, id="sets-of-changes"),
    ],
)
def test_the_windows_that_have_not_ended_stand_as_if_none_ended(
    hourly: PipelineOf,
    tmp_path: Path,
    spark: SparkSession,
    contract: Contract,
    source: dict[str, Any],
    history: Callable[[], tuple[Batches, datetime]],
    aggregate: dict[str, str],
) -> None:
    functions, (batches, clock) = Functions(spark, contract), history()
    message = GetMessageClass(contract.message("shop.v1.StoreHour"))

    def play(crash_at: int | None = None, **window: str) -> tuple[dict[str, Message], MicroBatches]:
        played = MicroBatches(tmp_path / uuid4().hex, hourly(source, aggregate, **window), spark, functions)
        for each in batches:
            played.add_placed(each)
        if crash_at is not None:
            played.run(crash_at=crash_at)
        played.run()
        states = read_fenced(played.written)
        return {key: message.FromString(state.payload) for key, state in states.items()}, played

    all_windows, _ = play()
    standing, played = play(crash_at=2, keep="3h")

    def ends(key: str) -> datetime:
        return datetime.fromisoformat(key.split("\0")[2])

    assert standing == {key: window for key, window in all_windows.items() if ends(key) >= clock - KEEP}
    assert 0 < len(standing) < len(all_windows) / 2
    assert played.observed("windows")["ended"] > 0
