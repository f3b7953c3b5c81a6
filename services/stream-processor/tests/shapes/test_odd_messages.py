"""Messages with names and numbers that the shipped ones do not have."""

from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.message import Message
from pyspark.sql import SparkSession

from statecast.descriptors import MessageTypes
from statecast.state.v1.state_pb2 import StateRecord
from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.steps.functions import Functions
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.one_batch import OneBatch

MESSAGES = """
syntax = "proto3"; package odd.v1;
message Place { string city = 1; }
message Row { string id = 1; uint64 rank = 2; Place home = 3; Place work = 4; }
message Seat { string id = 1; string row = 2; }
message Doubled { string id = 1; string Id = 2; }
message Ranks { string id = 1; repeated int64 sent = 2; repeated uint32 ranks = 3; }
message Cities { string city = 1; string id = 2; int64 rows = 3; repeated string seats = 4; bool seats_truncated = 5; }
"""
TABLE = {"topic": "orders", "format": "table", "values": "protobuf"}


@pytest.fixture
def types(tmp_path: Path) -> MessageTypes:
    (tmp_path / "odd.proto").write_text(MESSAGES)
    return MessageTypes.read(tmp_path)


@pytest.fixture
def read(types: MessageTypes) -> PipelineOf:
    """Reads a pipeline of a table of `message`, with more keys of its file."""

    def read(message: str, **more: Any) -> Pipeline:
        content = {"name": "odd", "source": {**TABLE, "message": f"odd.v1.{message}"}, "sink": {"topic": "t"}, **more}
        definition = PipelineFile.model_validate({"group_by": "id", "keep": "latest", **content})
        return shapes.check("odd.yaml", definition, Contract(types.descriptor_set))

    return read


@pytest.fixture
def odd_batch(spark: SparkSession, types: MessageTypes) -> OneBatch:
    return OneBatch(spark, Functions(spark, Contract(types.descriptor_set)))


def test_two_values_of_a_group_in_one_field_are_refused(read: PipelineOf) -> None:
    keep, sink = {"aggregate": {"rows": "count(*)"}}, {"topic": "t", "message": "odd.v1.Cities"}

    with pytest.raises(PipelineFileError, match=r"group_by: home\.city and work\.city both go into the field city"):
        read("Row", group_by=["home.city", "work.city"], keep=keep, sink=sink)


def test_fields_that_differ_in_case_alone_are_refused(read: PipelineOf) -> None:
    with pytest.raises(PipelineFileError, match=r"source\.message: odd\.v1\.Doubled has id and Id, which SQL cannot"):
        read("Doubled")


@pytest.mark.timeout(600)
def test_a_field_that_is_called_row_is_a_field(read: PipelineOf, types: MessageTypes, odd_batch: OneBatch) -> None:
    seat, cities = types.message_class("odd.v1.Seat"), types.message_class("odd.v1.Cities")
    sent = [(name.encode(), seat(id=name, row=row)) for name, row in (("a", "7"), ("b", "8"))]
    summed = read(
        "Seat",
        where="row = '7'",
        keep={"aggregate": {"rows": "count(*)", "seats": "collect_set(row)"}},
        sink={"topic": "t", "message": "odd.v1.Cities"},
    )

    assert [bytes(line.key) for line in odd_batch.written(read("Seat", where="row = '7'"), *sent)] == [b"a"]
    [line] = odd_batch.written(summed, *sent)
    assert _payload(line.value, cities) == cities(id="a", rows=1, seats=["7"])


@pytest.mark.timeout(600)
def test_a_number_with_too_many_digits_to_sort_by_is_set_aside(
    read: PipelineOf, types: MessageTypes, odd_batch: OneBatch
) -> None:
    row = types.message_class("odd.v1.Row")
    pipeline = read("Row", keep={"members": {"key": "id", "sort": "rank"}})

    sent = [(b"a", row(id="a", rank=10**19 - 1)), (b"b", row(id="b", rank=10**19))]

    assert odd_batch.problems(pipeline, *sent) == [None, "after.rank has more than 19 digits, its text would be cut"]


@pytest.mark.timeout(600)
def test_numbers_of_a_list_that_its_field_cannot_hold_leave_it_empty(
    read: PipelineOf, types: MessageTypes, odd_batch: OneBatch
) -> None:
    ranks = types.message_class("odd.v1.Ranks")
    sent = {"a": [7, 2**32 - 1], "b": [7, 2**32], "c": [-1], "d": []}
    pipeline = read("Ranks", select={"id": "id", "ranks": "sent"}, sink={"topic": "t", "message": "odd.v1.Ranks"})

    lines = odd_batch.written(pipeline, *((name.encode(), ranks(id=name, sent=sent[name])) for name in sent))

    written = {bytes(line.key).decode(): list(cast(Any, _payload(line.value, ranks)).ranks) for line in lines}
    assert written == {"a": [7, 2**32 - 1], "b": [], "c": [], "d": []}


def _payload(value: bytes, message: type[Message]) -> Message:
    return message.FromString(StateRecord.FromString(bytes(value)).payload)
