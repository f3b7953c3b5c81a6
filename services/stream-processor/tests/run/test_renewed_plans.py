"""Queries that are prepared again, after the mounted messages have got more fields."""

from collections.abc import Iterable, Mapping
from typing import Any, cast

import pytest

from stream_processor.pipeline.fields import Contract
from stream_processor.run.plan import plan, topics_of
from stream_processor.run.runner import renewed
from testkit.stream_processor.micro_batches import PipelineOf


class FakeTopics:
    """Topics that take records of a megabyte, and may be compacted where a table needs it."""

    def config(self, names: Iterable[str], key: str) -> Mapping[str, str]:
        return {name: {"cleanup.policy": "delete"}.get(key, "4000000") for name in names}


@pytest.mark.parametrize("name", ["orders-by-key", "invoices-with-store"])
def test_the_rows_of_a_query_that_starts_again_have_the_fields_that_its_functions_read_and_write(
    shipped: PipelineOf, extended: Contract, name: str
) -> None:
    pipelines = [shipped(name)]
    [before] = plan(pipelines, dict.fromkeys(topics_of(pipelines), 1))

    after = renewed(before, extended, cast(Any, FakeTopics()))

    for message in (after.pipeline.row, after.pipeline.sink):
        assert message is extended.message(message.full_name)
    assert (after.name, after.pipeline.definition) == (before.name, before.pipeline.definition)
