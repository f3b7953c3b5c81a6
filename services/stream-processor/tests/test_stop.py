"""Stopping what may hang or be gone."""

from typing import Any, cast

from py4j.protocol import Py4JNetworkError

from stream_processor.stop import stop


class Gone:
    """A Spark, or a query, whose JVM has ended: everything raises."""

    @property
    def sparkContext(self) -> "Gone":  # noqa: N802  Spark's name
        return self

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
