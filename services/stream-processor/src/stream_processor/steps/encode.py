"""Encodes what goes onto a keyed topic, in parts: encoded messages that are laid end to end are one message.

So what is large or does not change is encoded once and before the shuffle, however many keys it is written under.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.functions import Functions

STATE_RECORD = "statecast.state.v1.StateRecord"


def source_part(source: Column, functions: Functions) -> Column:
    """The bytes of a StateRecord with nothing but its source."""
    return functions.encode(F.struct(_null("long"), _null("long"), source, _null("binary")), STATE_RECORD)


def record(epoch: Column, sequence: Column, source: Column, payload: Column, functions: Functions) -> Column:
    """The bytes of a StateRecord; `source` is a source_part, and a null `payload` is left out, as of a tombstone."""
    return F.concat(functions.encode(F.struct(epoch, sequence, _null("binary"), payload), STATE_RECORD), source)


def _null(of_type: str) -> Column:
    return F.lit(None).cast(of_type)
