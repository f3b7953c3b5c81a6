"""The kinds of failures of queries."""

from typing import Any, cast

import pytest
from pyspark.errors import PySparkException

from stream_processor.errors import NoRoomError, QueryFailedError
from stream_processor.run.plan import plan, topics_of
from stream_processor.run.queries import start
from testkit.stream_processor.micro_batches import PipelineOf

FULL = "Job aborted due to stage failure\n\tat a.b.C\nCaused by: java.io.IOException: No space left on device"


class Refused:
    """A query that Spark does not start."""

    def __init__(self, text: str) -> None:
        self._text = text

    def start(self) -> Any:
        raise PySparkException(self._text)


@pytest.mark.parametrize(("text", "kind"), [(FULL, NoRoomError), ("no directory\n\tat a.b.C", QueryFailedError)])
def test_a_start_without_room_is_known_wherever_the_error_says_so(
    shipped: PipelineOf, text: str, kind: type[QueryFailedError]
) -> None:
    pipelines = [shipped("orders-by-key")]
    [planned] = plan(pipelines, dict.fromkeys(topics_of(pipelines), 1))

    with pytest.raises(QueryFailedError, match=r"^the query orders-by-key cannot start: \S.*[^C]$") as raised:
        start(planned, cast(Any, Refused(text)))
    assert raised.type is kind
