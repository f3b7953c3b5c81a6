"""Reads where a change stands in PostgreSQL's log from Debezium's `source`."""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps import json_text
from stream_processor.steps.json_text import MALFORMED

SOURCE = json_text.texts("lsn", "txId", "ts_ms", "ts_us", "snapshot", "table")
END_US = 253_402_300_800_000_000
"""The end of the year 9999, which a Timestamp of the contract cannot pass."""


def source(texts: Column, epoch: int) -> Column:
    """statecast.change.v1.Source from an object of SOURCE; null where the change has no source."""
    fields = {
        "epoch": F.lit(epoch).cast("bigint"),
        "log_sequence_number": _sequence(texts),
        "transaction_id": F.coalesce(texts.getField("txId"), F.lit("")),
        "commit_time": time(texts),
        # `true`, `first`, `last`, `incremental` and more, or `false`.
        "snapshot": F.coalesce(F.lower(texts.getField("snapshot")) != "false", F.lit(False)),
        "table": F.coalesce(texts.getField("table"), F.lit("")),
    }
    return F.when(texts.isNotNull(), F.struct(*[column.alias(name) for name, column in fields.items()]))


def source_problem(texts: Column) -> Column:
    """Why there is no telling where the change stands; null when there is, or when there is no source at all."""
    return F.coalesce(
        F.when(texts.getField(MALFORMED).isNotNull(), "source is no JSON object"),
        F.when(texts.isNotNull() & _sequence(texts).isNull(), "source.lsn is not a log sequence number"),
    )


def time(texts: Column) -> Column:
    """The moment in `ts_us`, or in `ts_ms` where an older connector gives no other."""
    return F.coalesce(_moment(texts.getField("ts_us"), 1), _moment(texts.getField("ts_ms"), 1000))


def _sequence(texts: Column) -> Column:
    lsn = texts.getField("lsn")
    return F.when(lsn.rlike(r"^\d{1,18}$"), lsn.cast("bigint"))


def _moment(count: Column, microseconds: int) -> Column:
    total = F.when(count.rlike(r"^\d{1,18}$"), count.cast("decimal(18,0)") * microseconds)
    return F.when(total < END_US, F.timestamp_micros(total.cast("bigint")))
