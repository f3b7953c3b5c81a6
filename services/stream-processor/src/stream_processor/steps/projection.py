"""Filters rows, joins them with keyed topics, and makes the message that is written out of their values.

A row is joined with the table's row of that moment, some tens of milliseconds after the table's own change. A later
change of the table does not rewrite the rows that were joined before.
"""

from collections.abc import Mapping

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DataType, IntegralType, StringType

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.spark_internals import attempt, attempted, exact, pattern_problem
from stream_processor.steps.functions import UNSIGNED, Functions, filled, fits, row_type, within
from stream_processor.steps.keys import single

ELEMENT = "__element"
"""The column of an exploded path's elements, where there is one."""
KEPT = "__kept"
PARTITION = "__partition"
KEY_MATCHES = "__key_matches"
"""A column of whether the record's key is one that the pipeline takes; missing when it takes all."""
_MATCHES = "__matches"
_NOTHING: Mapping[str, str] = {}


def in_scope(changes: DataFrame, row: str, beside: Mapping[str, str] = _NOTHING) -> DataFrame:
    """Returns the scope of SQL expressions: the fields of the struct `row` as columns, and the struct itself as `row`.

    `beside` names columns of `changes` that expressions see under another name: name → column. All columns of
    `changes` stand in the struct KEPT. A field that is called `row` takes the name of the struct.
    """
    has_own = any(name.lower() == "row" for name in changes.select(f"{row}.*").columns)
    columns = dict(beside) if has_own else {"row": row, **beside}
    kept = changes.select(F.struct(*changes.columns).alias(KEPT))
    return kept.select(
        KEPT, f"{KEPT}.{row}.*", *[F.col(f"{KEPT}.{column}").alias(name) for name, column in columns.items()]
    )


def refused(pipeline: Pipeline, key: str, error: AnalysisException) -> PipelineFileError:
    """Returns the error for an expression at `key` of the file that Spark cannot compute."""
    text = error.getMessage() if error.getCondition() else str(error)  # our own errors have no condition
    return PipelineFileError(pipeline.file, key, (text or str(error)).splitlines()[0])


def filter_keys(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Treats a row as absent from a record when the pipeline's `where_key` is not found in its key; adds KEY_MATCHES.

    The row that such a record names may have been in, under another key: the state knows, and retracts it. So the row
    before it, as a change states it, is not the whole truth. Raises PipelineFileError for no regular expression.
    """
    pattern = pipeline.definition.where_key
    if pattern is None:
        return changes
    if (problem := pattern_problem(changes.sparkSession, pattern)) is not None:
        raise PipelineFileError(pipeline.file, "where_key", f"is not a regular expression: {problem}")
    text = F.col("key").cast("string")
    if "record_key" in changes.columns:
        text = F.coalesce(F.col("record_key.text"), text)
    # In a long key a pattern may recurse too deeply.
    matches = F.coalesce(attempted(F.rlike(text, F.lit(pattern)), changes.sparkSession), F.lit(False))
    rows = {row: F.when(F.col(KEY_MATCHES), F.col(row)) for row in ("before", "after")}
    return changes.withColumn(KEY_MATCHES, matches).withColumns({**rows, "knows_before": F.lit(False)})


def filter_rows(changes: DataFrame, pipeline: Pipeline) -> DataFrame:
    """Treats a row as absent where the pipeline's condition is not true of it.

    So a row that stops matching leaves its groups like a deleted one, and a row that starts to match enters them like
    a new one. A condition that gives null is not true. Raises PipelineFileError for one that does not fit the row.
    """
    condition = pipeline.definition.where
    if condition is None:
        return changes
    try:
        return _only_matching(_only_matching(changes, "before", condition), "after", condition)
    except AnalysisException as error:
        raise refused(pipeline, "where", error) from error


def _only_matching(changes: DataFrame, row: str, condition: str) -> DataFrame:
    matched = in_scope(changes, row).select(KEPT, exact(attempt(condition), changes.sparkSession).alias(_MATCHES))
    columns = {name: F.col(f"{KEPT}.{name}") for name in changes.columns}
    columns[row] = F.when(F.col(_MATCHES), columns[row])
    return matched.select(*[column.alias(name) for name, column in columns.items()])


def join(changes: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Adds a struct column per joined table: the row of it that `after` names; null where there is none."""
    for table in pipeline.joins:
        looked_up = functions.lookup(single(F.col("after"), table.key), table.topic, table.message.full_name)
        changes = changes.withColumn(f"__table_{table.name}", looked_up)
    return changes


def project(changes: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Replaces `payload` by the encoded message that `select` makes of `after`, where there is such a row.

    Expressions see the row's fields, the row as `row`, the joined tables, and `element` of an exploded path. Fields
    that are not selected stay unset. Raises PipelineFileError for an expression that Spark cannot compute.
    """
    if not pipeline.select:
        return changes
    scoped = in_scope(changes, "after", _beside(pipeline))
    message = message_of(scoped, pipeline, functions)
    columns = {name: F.col(f"{KEPT}.{name}") for name in changes.columns}
    columns["payload"] = F.when(columns["after"].isNotNull(), message)
    return scoped.select(*[each.alias(name) for name, each in columns.items()])


def message_of(scoped: DataFrame, pipeline: Pipeline, functions: Functions) -> Column:
    """Returns the encoded message that `select` makes in the scope of `scoped`.

    Raises PipelineFileError for an expression that Spark cannot compute.
    """
    selected = {name: _selected(scoped, pipeline, name, sql) for name, sql in pipeline.select.items()}
    return functions.encode(filled(pipeline.sink, selected), pipeline.sink.full_name)


def place(changes: DataFrame, pipeline: Pipeline, partitions: int, functions: Functions) -> DataFrame:
    """Adds PARTITION, which of so many `sink.partition_by` chooses: an integer's remainder, or that of a text as key.

    It is null where the expression is. Raises PipelineFileError for one that gives something else.
    """
    sql, key = pipeline.definition.sink.partition_by, "sink.partition_by"
    if sql is None:
        return changes
    scoped = in_scope(changes, "after", _beside(pipeline))
    value, of_type = _computed(scoped, pipeline, key, sql)
    if isinstance(of_type, IntegralType):
        partition = F.pmod(value.cast("long"), F.lit(partitions)).cast("int")
    elif isinstance(of_type, StringType):
        partition = functions.kafka_partition(value.cast("binary"), partitions)
    else:
        raise PipelineFileError(pipeline.file, key, f"is {of_type.simpleString()}; it must be an integer or a text")
    return scoped.select(f"{KEPT}.*", partition.alias(PARTITION))


def _beside(pipeline: Pipeline) -> dict[str, str]:
    """Returns the names that expressions have beside the row, and their columns.

    These are joined rows, and the element of an exploded path.
    """
    tables = {table.name: f"__table_{table.name}" for table in pipeline.joins}
    return tables | ({} if pipeline.explode is None else {"element": ELEMENT})


def _selected(scoped: DataFrame, pipeline: Pipeline, name: str, sql: str) -> Column:
    """Returns the expression. Raises PipelineFileError if its type does not fit the field's."""
    key, declared = f"select.{name}", row_type(pipeline.sink)[name].dataType
    expression, actual = _computed(scoped, pipeline, key, sql)
    if not fits(actual, declared):
        problem = f"is {actual.simpleString()}, the field needs {declared.simpleString()}"
        raise PipelineFileError(pipeline.file, key, problem)
    field = pipeline.sink.fields_by_name[name]
    # Spark's type of the others holds no number that the field does not.
    return within(expression, field) if field.cpp_type in UNSIGNED else expression


def _computed(scoped: DataFrame, pipeline: Pipeline, key: str, sql: str) -> tuple[Column, DataType]:
    """Returns the expression at a key of the file, and its type.

    Raises PipelineFileError if Spark cannot compute it.
    """
    try:
        expression = exact(attempt(sql), scoped.sparkSession)
        return expression, scoped.select(expression.alias("value")).schema["value"].dataType
    except AnalysisException as error:
        raise refused(pipeline, key, error) from error
