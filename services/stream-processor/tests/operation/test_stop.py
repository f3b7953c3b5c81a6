"""Stopping what may hang or be gone."""

from typing import Any, cast
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JNetworkError
from structlog.testing import capture_logs

from stream_processor.operation.stop import drain, stop


class Gone:
    """A Spark, or a query, whose JVM has ended: everything raises."""

    @property
    def sparkContext(self) -> "Gone":  # noqa: N802  Spark's name
        return self

    @property
    def _jvm(self) -> Any:
        raise Py4JNetworkError("gone")

    def setLogLevel(self, _level: str) -> None:  # noqa: N802  Spark's name
        raise Py4JNetworkError("gone")

    def stop(self) -> None:
        raise Py4JNetworkError("gone")


class Stoppable(Gone):
    """A query that stops."""

    stopped = False

    def stop(self) -> None:
        self.stopped = True


def test_what_is_gone_does_not_keep_the_others_from_stopping() -> None:
    query = Stoppable()

    stop(cast(Any, Gone()), cast(Any, [Gone(), query]))

    assert query.stopped


def test_a_drain_of_what_is_gone_is_told_and_no_failure() -> None:
    with capture_logs() as told:
        drain(cast(Any, Gone()), cast(Any, [Gone()]), within_s=1)

    assert [each["event"] for each in told] == ["not drained"]


def test_no_time_is_no_drain() -> None:
    with capture_logs() as told:
        drain(cast(Any, Gone()), cast(Any, [Gone()]), within_s=0)

    assert told == []


@pytest.mark.parametrize(
    ("looks", "within_s", "event"),
    [(3, 60.0, "drained"), (1000, 0.1, "some queries stop without a last checkpoint")],
)
def test_a_drain_waits_for_the_queries_until_its_time_is_over(looks: int, within_s: float, event: str) -> None:
    query = MagicMock()
    query.name = "q"
    query._jsq.streamingQuery().queryExecutionThread().isAlive.side_effect = [True] * looks + [False]

    with capture_logs() as told:
        drain(MagicMock(), [query], within_s=within_s)

    assert told[0]["event"] == event
    assert told[0].get("queries", ["q"]) == ["q"]
