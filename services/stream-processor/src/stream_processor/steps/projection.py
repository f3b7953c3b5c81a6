"""Makes the message that is written out of a row and what it was joined with."""

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses
from pyspark.sql.types import DataType

from stream_processor.definition.pipeline import Pipeline, Selected
from stream_processor.errors import PipelineFileError
from stream_processor.steps import row_schema
from stream_processor.steps.exact_sql import exact
from stream_processor.steps.functions import Functions
from stream_processor.steps.joining import column
from stream_processor.steps.row_scope import KEPT, in_scope
from stream_processor.steps.type_fit import fits

ELEMENT = "__element"
"""The column of an exploded path's elements, where there is one."""


def project(changes: DataFrame, pipeline: Pipeline, functions: Functions) -> DataFrame:
    """Replaces `payload` by the encoded message that `select` makes of `after`, where there is such a row.

    Expressions see the row's fields, the row as `row`, the joined tables, and `element` of an exploded path. Fields
    that are not selected stay unset. Raises PipelineFileError for an expression that Spark cannot follow.
    """
    if not pipeline.select:
        return changes
    beside = {table.name: column(table) for table in pipeline.joins}
    if pipeline.explode is not None:
        beside["element"] = ELEMENT
    scoped = in_scope(changes, "after", beside)
    message = functions.encode(_message(scoped, pipeline), pipeline.sink.full_name)
    columns = {name: F.col(f"{KEPT}.{name}") for name in changes.columns}
    columns["payload"] = F.when(columns["after"].isNotNull(), message)
    return scoped.select(*[each.alias(name) for name, each in columns.items()])


def _message(scoped: DataFrame, pipeline: Pipeline) -> Column:
    selected = {each.field.name: each for each in pipeline.select}
    return F.struct(
        *[
            (
                _field(scoped, pipeline.file, selected[field.name], field.dataType)
                if field.name in selected
                else F.lit(None)
            )
            .cast(field.dataType)
            .alias(field.name)
            for field in row_schema.of(pipeline.sink).fields
        ]
    )


def _field(scoped: DataFrame, file: str, selected: Selected, wanted: DataType) -> Column:
    """The expression. Raises PipelineFileError if its type does not fit the field's."""
    key = f"select.{selected.field.name}"
    try:
        expression = exact(selected.sql, scoped.sparkSession)
        found = scoped.select(expression.alias("found")).schema["found"].dataType
    except AnalysisException as error:
        raise PipelineFileError(file, key, (error.getMessage() or str(error)).splitlines()[0]) from error
    if not fits(found, wanted):
        raise PipelineFileError(file, key, f"is {found.simpleString()}, the field needs {wanted.simpleString()}")
    return expression
