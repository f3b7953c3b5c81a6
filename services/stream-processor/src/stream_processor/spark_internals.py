"""All that this service uses of Spark's and py4j's private parts, which may change with any release; this is for 4.3.

The classes of jvm/ (`io.statecast.spark`) are reached here too, because only private parts lead to a JVM's classes.
"""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeAlias, cast

from py4j.java_collections import ListConverter, MapConverter
from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import AnalysisException, IllegalArgumentException, PySparkException
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DataType

JVM_LOST = (Py4JError, OSError)
"""Errors that any call raises when Spark's JVM has ended."""
JVM_REFUSALS = (Py4JJavaError, PySparkException)
"""Errors of a call that the JVM has refused; it lives."""
JVM_ERRORS = (*JVM_LOST, PySparkException)
"""Errors that a call raises when the JVM has ended or refuses."""

Java = Any
"""An object of the JVM, where Python knows no types."""

Configuration: TypeAlias = DataType | Java | str | int | dict[str, str] | dict[str, int] | list[str]
"""What a function or an operator of jvm/ is made with."""

_LOOK_UPS: dict[Any, Callable[[Any, str], Any]] = {kind: kind.__getattr__ for kind in (JVMView, JavaPackage, JavaClass)}
"""py4j's functions that look up a name in the JVM."""
_LASTING = (JavaPackage, JavaClass, JavaMember)
"""The kinds of results that a name has permanently, unlike the value of a field."""

_LOOK_S = 0.05
_BEYOND_MS = 1 << 52
"""A time after the end of every batch; some room is left to add to it."""
_STEP_MS = 1 << 42
"""Longer than every batch, in case one has begun in that time."""


def jvm_reason(error: BaseException) -> str:
    """Returns the first line of the JVM's message about one of the JVM_ERRORS."""
    text = str(error.java_exception) if isinstance(error, Py4JJavaError) else str(error)
    return text.strip().partition("\n")[0]


def java_column(
    spark: SparkSession,
    function: str,
    configuration: Sequence[Configuration],
    columns: Sequence[Column],
) -> Column:
    """Returns a column function of ColumnFunctions.java, made with `configuration` and applied to `columns`."""
    arguments = [_java(spark, each) for each in configuration]
    java = getattr(_jvm(spark).io.statecast.spark.ColumnFunctions, function)(*arguments)
    return Column(java.apply(_jvm(spark).PythonUtils.toSeq([cast(Any, column)._jc for column in columns])))


def descriptor_set(spark: SparkSession, serialized: bytes) -> Java:
    """Returns the DescriptorSet.java of a serialized google.protobuf.FileDescriptorSet."""
    return _jvm(spark).io.statecast.spark.decode.DescriptorSet(serialized)


def _java(spark: SparkSession, value: Configuration) -> Any:
    if isinstance(value, DataType):
        return cast(Any, spark)._jsparkSession.parseDataType(value.json())
    if isinstance(value, list):
        return ListConverter().convert(value, _jvm(spark)._gateway_client)
    return MapConverter().convert(value, _jvm(spark)._gateway_client) if isinstance(value, dict) else value


def attempt(sql: str) -> str:
    """Returns SQL, for `exact`, of an expression of a pipeline's file: null where it cannot be computed for a row.

    It is null, too, where its functions would make more of the row than Allowance.java lets them.
    """
    return f"__attempt({sql}\n)"  # the expression may end with a comment


def exact(sql: str, spark: SparkSession) -> Column:
    """Returns the SQL expression as a column with integers that never wrap (RowExpressions.java).

    Without ANSI mode Spark cuts a value beyond an integer's type as Java does, and with it the query would end. So
    `a + b`, `a - b` and `a * b` get the mode of Spark's own `try_add`: null where their type cannot hold the result.
    In the SQL of a file, Checked.java treats all that is resolved in the same way.
    Raises Spark's AnalysisException for text that is no SQL, and for a constant that is no pattern.
    """
    jvm = _jvm(spark)
    parsed = cast(Any, spark)._jsparkSession.sessionState().sqlParser().parseExpression(sql)
    try:
        safe = jvm.io.statecast.spark.expressions.RowExpressions.safe(parsed)
    except IllegalArgumentException as error:
        raise AnalysisException(jvm_reason(error)) from error
    return Column(jvm.org.apache.spark.sql.classic.ExpressionUtils.column(safe))


def attempted(column: Column, spark: SparkSession) -> Column:
    """Returns the column, null where it cannot be computed for a row, as `attempt` does for SQL."""
    jvm = _jvm(spark)
    spark_columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
    guarded = jvm.io.statecast.spark.expressions.Attempt(spark_columns.expression(cast(Any, column)._jc))
    return Column(spark_columns.column(guarded))


def pattern_problem(spark: SparkSession, pattern: str) -> str | None:
    """Returns why the text is no regular expression of Java's, None if it is one."""
    try:
        _jvm(spark).java.util.regex.Pattern.compile(pattern)
    except PySparkException as error:
        return jvm_reason(error)
    return None


def stateful(operator: str, lines: DataFrame, *arguments: Configuration) -> DataFrame:
    """Returns the lines behind an operator with state: `state.Previous` or another class, which documents its columns.

    `arguments` are those of its `apply` behind the lines. It shuffles the lines by its key.
    """
    spark = lines.sparkSession
    java = attrgetter(operator)(_jvm(spark).io.statecast.spark)
    return DataFrame(java.apply(cast(Any, lines)._jdf, *[_java(spark, each) for each in arguments]), spark)


def partition_keys(spark: SparkSession) -> list[str]:
    """Returns a `primary_key` per partition of the state, by which a truncation's line reaches it in Previous.java.

    By the session's number of shuffle partitions, which must be that of the checkpoint; the query fails otherwise.
    """
    partitions = int(cast(str, spark.conf.get("spark.sql.shuffle.partitions")))
    return list(_jvm(spark).io.statecast.spark.state.Previous.partitionKeys(partitions))


def plan_text(frame: DataFrame) -> str:
    """Returns Spark's physical plan of a streaming DataFrame, without running it."""
    execution = cast(Any, frame)._jdf.queryExecution()
    return str(_jvm(frame.sparkSession).PythonSQLUtils.explainString(execution, "simple"))


def spark_jars() -> list[Path]:
    """Returns the jars of the Spark that runs, in the order of their names."""
    return sorted(Path(_find_spark_home()).glob("jars/*.jar"))


def task_slots(spark: SparkSession) -> tuple[int, int]:
    """Returns the task slots of all registered executors, and those with a task; a local master is like a cluster.

    A task that was told to end counts until it has.
    """
    alive = cast(Any, spark.sparkContext._jsc).sc().statusStore().executorList(True)
    executors = [alive.apply(number) for number in range(alive.size())]
    return sum(int(each.maxTasks()) for each in executors), sum(int(each.activeTasks()) for each in executors)


def running_tasks(spark: SparkSession) -> Callable[[], dict[str, int]]:
    """Returns a function that counts the tasks executors have started and not ended, by their query's run id."""
    jvm, status = _jvm(spark), cast(Any, spark.sparkContext._jsc).sc().statusStore()
    running = jvm.java.util.Collections.singletonList(jvm.org.apache.spark.JobExecutionStatus.RUNNING)
    # One text, where a call for each field of each job and stage would be hundreds.
    texts = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    texts.registerModule(jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())

    def ask() -> dict[str, int]:
        jobs = json.loads(texts.writeValueAsString(status.jobsList(running)))
        counts = Counter[str]()
        for job in jobs:
            counts[job["jobGroup"]] += job["numActiveTasks"]
        return counts

    return ask


def end_jvm_with_this_process(spark: SparkSession) -> None:
    """Makes the JVM end within a second after this process, however that ends."""
    _jvm(spark).io.statecast.spark.session.ParentWatch.start(os.getpid())


def launch_jvm(settings: Mapping[str, str]) -> None:
    """Starts Spark's JVM with these settings, or joins it; others come with the session. Raises PySparkRuntimeError."""
    cast(Any, SparkContext)._ensure_initialized(conf=SparkConf(loadDefaults=False).setAll(list(settings.items())))


def remember_java_names() -> None:
    """Makes py4j ask the JVM once for each package, class and static method.

    It asks at each use otherwise, for each part of a name: the JVM then looks for classes `io` and `io.statecast` in
    all of its jars, and for a method among copies of all of its class.
    """
    for kind, look_up in _LOOK_UPS.items():
        kind.__getattr__ = _remembering(look_up)


def _remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def remembered(self: Any, name: str) -> Any:
        value = look_up(self, name)
        if isinstance(value, _LASTING):
            vars(self)[name] = value
        return value

    return remembered


def end_jvm() -> None:
    """Ends the JVM of this process in order, as when this process ends, and waits until it has."""
    process = cast(Any, SparkContext)._gateway.proc
    process.stdin.close()
    process.wait()


def close_tables(spark: SparkSession) -> None:
    """Stops following the joined tables in this JVM."""
    _jvm(spark).io.statecast.spark.tables.GlobalTables.closeAll()


class CheckpointFiles:
    """Files of any Hadoop file system, through Spark's checkpoint manager. Calls may block, and raise JVM_ERRORS."""

    def __init__(self, spark: SparkSession, uri: str) -> None:
        self._jvm = _jvm(spark)
        configuration = cast(Any, spark)._jsparkSession.sessionState().newHadoopConf()
        manager = self._jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
        self._files = manager.create(self._path(uri), configuration)
        self._files.mkdirs(self._path(uri))

    def exists(self, uri: str) -> bool:
        return bool(self._files.exists(self._path(uri)))

    def read(self, uri: str) -> bytes:
        with closing(self._files.open(self._path(uri))) as stream:
            return bytes(stream.readAllBytes())

    def replace(self, uri: str, content: bytes) -> None:
        stream = self._files.createAtomic(self._path(uri), True)
        try:
            stream.write(bytearray(content))
        except Py4JError:
            stream.cancel()
            raise
        stream.close()

    def _path(self, uri: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(uri)


def end_batches(spark: SparkSession, queries: Sequence[StreamingQuery], timeout_s: float) -> list[str]:
    """Lets queries end after their present batch, with its checkpoint; returns the names of those that do not in time.

    Spark itself can only interrupt a query, and the records written since its last checkpoint then come again at the
    next start. A real-time batch lasts as long as the time between checkpoints, so its time is made to run out: the
    readers (SharedKafkaReader.java) look at one clock of Spark's before each record and twice a second. On a cluster
    they are in other JVMs, and batches end at their usual time. A query that fails meanwhile has ended too.
    """
    runtime = _jvm(spark).org.apache.spark.sql.execution
    terminated = getattr(getattr(runtime.streaming.runtime, "TERMINATED$"), "MODULE$")
    batch_clock = _jvm(spark).org.apache.spark.util.ManualClock(_BEYOND_MS)
    deadline = time.monotonic() + timeout_s
    executions = {str(query.name): cast(Any, query)._jsq.streamingQuery() for query in queries}
    for execution in executions.values():
        execution.state().set(terminated)
    runtime.datasources.v2.LowLatencyClock.setClock(batch_clock)
    while running := [name for name, each in executions.items() if each.queryExecutionThread().isAlive()]:
        if time.monotonic() >= deadline:
            return running
        batch_clock.advance(_STEP_MS)
        time.sleep(_LOOK_S)
    return []


def _jvm(spark: SparkSession) -> Any:
    return cast(Any, spark)._jvm
