"""Messages with names that the shipped ones do not have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from statecast.descriptors import MessageTypes
from statecast_domains.errors import PipelineFileError
from statecast_domains.pipeline_file import PipelineFile
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline

MESSAGES = """
syntax = "proto3"; package odd.v1;
message Place { string city = 1; }
message Row { string id = 1; Place home = 2; Place work = 3; }
message Doubled { string id = 1; string Id = 2; }
message Cities { string city = 1; string id = 2; int64 rows = 3; }
"""
TABLE = {"topic": "orders", "format": "table", "values": "protobuf"}


@pytest.fixture
def types(tmp_path: Path) -> MessageTypes:
    (tmp_path / "odd.proto").write_text(MESSAGES)
    return MessageTypes.read(tmp_path)


@pytest.fixture
def read(types: MessageTypes) -> Callable[..., Pipeline]:
    """Reads a pipeline of a table of `message`, with more keys of its file."""

    def read(message: str, **more: Any) -> Pipeline:
        content = {"name": "odd", "source": {**TABLE, "message": f"odd.v1.{message}"}, "sink": {"topic": "t"}, **more}
        definition = PipelineFile.model_validate({"group_by": "id", "keep": "latest", **content})
        return shapes.check("odd.yaml", definition, Contract(types.descriptor_set))

    return read


def test_two_values_of_a_group_in_one_field_are_refused(read: Callable[..., Pipeline]) -> None:
    keep, sink = {"aggregate": {"rows": "count(*)"}}, {"topic": "t", "message": "odd.v1.Cities"}

    with pytest.raises(PipelineFileError, match=r"group_by: home\.city and work\.city both go into the field city"):
        read("Row", group_by=["home.city", "work.city"], keep=keep, sink=sink)


def test_fields_that_differ_in_case_alone_are_refused(read: Callable[..., Pipeline]) -> None:
    with pytest.raises(PipelineFileError, match=r"source\.message: odd\.v1\.Doubled has id and Id, which SQL cannot"):
        read("Doubled")
