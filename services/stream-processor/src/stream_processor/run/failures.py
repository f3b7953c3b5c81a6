"""Gives the errors with which Spark and Kafka's client end a query a kind, which is a class of errors, and a reason."""

from stream_processor.errors import NoRoomError, QueryFailedError, RecordsGoneError
from stream_processor.spark_internals import jvm_reason

_NO_ROOM = "No space left on device", "Disk quota exceeded", "Read-only file system"
"""Parts of the texts of a file system that takes nothing."""
_GONE = "OffsetOutOfRangeException", "Some data may have been lost"
"""Parts of the texts of Kafka's client and of Spark's source."""
_REMEDY = (
    "its topic no longer has records that it has not read, as when retention has deleted them: have the source write "
    "the rows again, and make a new generation of the keyed topic (docs/runbook.md)"
)


def failure_of(error: Exception) -> QueryFailedError:
    """Returns the failure of a query that Spark has ended, or has not started, with this error."""
    text = str(error)
    if any(sign in text for sign in _GONE):
        return RecordsGoneError(_REMEDY)
    for sign in _NO_ROOM:
        if sign in text:
            return NoRoomError(f"its checkpoint or Spark's directory cannot be written: {sign}")
    first = jvm_reason(error)
    return QueryFailedError(first.partition("terminated with exception: ")[2] or first)
