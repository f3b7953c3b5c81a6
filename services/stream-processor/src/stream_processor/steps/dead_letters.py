"""Sets aside the records that a pipeline cannot use. docs/operation.md lists the headers of a dead letter.

A record with a problem is no change from then on. It passes the same steps as a line that has only LETTER, up to the
pipeline's own sink, which writes it to the dead-letter topic. So a record is read and decoded once, and one checkpoint
covers both its results and its dead letter. Dead letters are written at least once: after a crash, those since the last
checkpoint are written again.
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.pipeline.pipeline import Pipeline, dead_letter_topic
from stream_processor.steps.functions import Functions
from stream_processor.steps.projection import KEY_MATCHES

REASON = "statecast-reason"
TOPIC = "statecast-topic"
PARTITION = "statecast-partition"
OFFSET = "statecast-offset"
PIPELINES = "statecast-pipelines"
TRUNCATED = "statecast-truncated"
REPLAYED = "statecast-replayed"

_ADDED = (REASON, TOPIC, PARTITION, OFFSET, PIPELINES, TRUNCATED)
DEAD_LETTER_HEADERS = frozenset(_ADDED)

LETTER = "letter"
"""A column: the record that is set aside with its reason, null on all lines of sound changes (LetterKeys.java)."""
HEADERS = "array<struct<key:string,value:binary>>"
"""The type of a record's headers."""
HEADERS_BYTES = 16_384
"""The most that these headers and Kafka's own fields take, with room to spare."""
DEFAULT_MAX_BYTES = 1_048_588
"""The `max.message.bytes` of a topic that does not set it."""
_MARK = "\0letter/"
_OF_RECORD = ("topic", "partition", "offset", "key", "value", "headers")
_OF_CHANGE = ("change", "before", "after", "payload")


def mark_letters(checked: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Adds LETTER to checked records, and takes the rows of those with a problem away.

    A record with a key that the pipeline does not take is of no use to it anyway: it is no letter.
    """
    wrong = F.col("problem").isNotNull()
    if pipeline.definition.where_key is not None:
        wrong = wrong & F.col(KEY_MATCHES)
    sink = F.lit(dead_letter_topic(pipeline.source_topic)).alias("sink")
    letter = F.struct(sink, *_OF_RECORD, F.col("problem").alias("reason"))
    sound = {name: F.when(F.col("problem").isNull(), F.col(name)) for name in _OF_CHANGE}
    return checked.withColumns({LETTER: F.when(wrong, letter), **sound})


def is_letter() -> Column:
    return F.col(LETTER).isNotNull()


def letter_key() -> Column:
    """Returns the text that a letter is shuffled by, null on other lines: no two records have the same."""
    place = F.concat_ws("/", f"{LETTER}.partition", f"{LETTER}.offset")
    return F.when(is_letter(), F.concat(F.lit(_MARK), place))


def explode_lines(lines: DataFrame, entries: Column, at: str, entry: str) -> DataFrame:
    """Returns a line per entry, with its place from 0 in `at`. A letter, which has no entries, stays one line."""
    exploded = lines.select("*", F.posexplode_outer(entries).alias(at, entry))
    return exploded.where(F.col(at).isNotNull() | is_letter())


def explode_groups(changes: DataFrame, lines: Column, kept: Sequence[str]) -> DataFrame:
    """Returns the fields of each of a change's `lines`, with the `key` of a group, the columns `kept`, and LETTER.

    A letter is a line of a group of its own.
    """
    split = explode_lines(changes, lines, at="__at", entry="line")
    fields = split.select("line.*", *kept, LETTER)
    return fields.withColumn("key", F.coalesce("key", letter_key()))


def address(records: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Returns records with the `topic` that each goes to, as Kafka's sink takes them.

    A letter goes to the dead-letter topic of its own source, with the content of the record that was set aside, to a
    partition that the producer chooses. It is cut if the topic would refuse it.
    """
    written = {"topic": F.lit(pipeline.sink_topic), "key": F.col("key"), "value": F.col("value")}
    written["headers"] = F.col("headers") if "headers" in records.columns else F.lit(None).cast(HEADERS)
    rooms = {dead_letter_topic(each.source_topic): _room(each) for each in pipeline.readers}
    letter = functions.dead_letter(F.col(LETTER), pipeline.name, [*_ADDED], rooms)
    columns = {name: F.when(is_letter(), letter[name]).otherwise(column) for name, column in written.items()}
    if "partition" in records.columns:
        columns["partition"] = F.when(~is_letter(), F.col("partition"))
    return records.select(*[column.alias(name) for name, column in columns.items()])


def _room(reader: Pipeline) -> int:
    """Returns the bytes that a letter of the reader's source may have beside the headers that are added."""
    return max((reader.max_dead_letter_bytes or DEFAULT_MAX_BYTES) - HEADERS_BYTES, 0)
