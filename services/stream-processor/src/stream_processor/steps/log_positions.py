"""Finds the place of a change in its database's log, as one number, from the `source` that Debezium gives with it.

Numbers of one log rise from change to change, and leave room for the rows that snapshots read (ADR 0023). PostgreSQL's
log sequence number is such a number. MySQL and MariaDB name a file of the binlog, where an event begins in it, and a
row of the event (ADR 0027).
"""

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

POSITION_FIELDS = ("connector", "lsn", "sequence", "file", "pos", "row")
"""The fields of `source` that say where a change stands, each read as text."""

BINLOG_CONNECTORS = ("mysql", "mariadb")
READ = "r"
INCREMENTAL = "incremental"
"""The word in `snapshot` for a row that is read while the table changes, and may be older than changes before it."""
ROWS_OF_EVENTS = ("c", "u", "d")
"""The operations for which `row` counts; with others the connector repeats that of the event before."""

GAP = 8
MAX_FILE = (1 << 28) - 1
FILE_SIZE = 1 << 32
"""An event's header has four bytes for its position."""
FIRST_POSITION = 4
"""A file begins with four bytes that tell its kind."""


def log_position(source: Column, operation: Column) -> Column:
    """Returns the place of the change, or of the log's end when the row was read; null where `source` has none."""
    return F.when(_is_binlog(source), _in_binlog(source, operation)).otherwise(
        F.coalesce(_log_sequence_number(source), _last_commit(source))
    )


def position_problem(source: Column, operation: Column) -> Column:
    """Returns why `source` names no place in a log; null when it does, and for a null `source`."""
    in_wal = _log_sequence_number(source).isNotNull() | ((operation == READ) & _last_commit(source).isNotNull())
    in_no_wal = source.isNotNull() & ~F.coalesce(in_wal, F.lit(False))
    return F.when(_is_binlog(source), _binlog_problem(source, operation)).otherwise(
        F.when(in_no_wal, "source.lsn is not a log sequence number")
    )


def _binlog_problem(source: Column, operation: Column) -> Column:
    place = f"source.pos and source.row are no place of {FIRST_POSITION} to {FILE_SIZE - 1} in a binlog"
    return F.coalesce(
        F.when(_file(source).isNull(), f"source.file does not end with a number of 1 to {MAX_FILE}, as a binlog does"),
        F.when(_in_binlog(source, operation).isNull(), place),
    )


def _is_binlog(source: Column) -> Column:
    return source.getField("connector").isin(*BINLOG_CONNECTORS)


def _in_binlog(source: Column, operation: Column) -> Column:
    """A row takes a byte of its event at least: place and row together are less than where the next event begins."""
    begin = _count(source.getField("pos"))
    row = F.when(operation.isin(*ROWS_OF_EVENTS), _count(source.getField("row"))).otherwise(F.lit(0))
    place = F.when(begin >= FIRST_POSITION, begin + row)
    return F.when(place < FILE_SIZE, (_file(source) * FILE_SIZE + place) * GAP)


def _file(source: Column) -> Column:
    """Returns the number at the end of the file's name, as of `mysql-bin.000003`."""
    name = source.getField("file")
    number = F.when(name.rlike(r"\.\d{1,9}$"), F.regexp_extract(name, r"\.(\d{1,9})$", 1).cast("bigint"))
    return F.when(number.between(1, MAX_FILE), number)


def _count(text: Column) -> Column:
    return F.when(text.rlike(r"^\d{1,10}$"), text.cast("bigint"))


def _log_sequence_number(source: Column) -> Column:
    lsn = source.getField("lsn")
    return F.when(lsn.rlike(r"^\d{1,18}$"), lsn.cast("bigint"))


def _last_commit(source: Column) -> Column:
    """Returns the last commit before an incremental snapshot read the row; null for a change with a place in the log.

    `source.sequence` is the text `["LAST COMMIT","LAST CHANGE"]`; the first is null before the first commit.
    """
    numbers = F.from_json(source.getField("sequence"), "array<string>")
    last = F.coalesce(*[F.get(numbers, F.lit(place)) for place in (0, 1)])
    return F.when(source.getField("lsn").isNull() & last.rlike(r"^\d{1,18}$"), last.cast("bigint"))
