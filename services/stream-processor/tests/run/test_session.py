"""The Spark session: its settings and slots, and how it stops when queries hang or are gone."""

from pathlib import Path
from typing import Any, cast
from unittest.mock import MagicMock

import pytest
import yaml
from py4j.protocol import REFLECTION_COMMAND_NAME, Py4JNetworkError
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from stream_processor.errors import NotBuiltError
from stream_processor.run.session import (
    CLASS_ARCHIVE,
    CODE_CACHE,
    COLLECTOR,
    COMPILE_ALL,
    JVM_LOG,
    LOGGING,
    SPARK_SETTINGS,
    configuration,
    drain,
    missing_slots,
    start_session,
    stop,
    stop_queries,
)
from stream_processor.run.topics import wait_while_missing
from stream_processor.settings import Settings
from stream_processor.spark_internals import task_slots
from testkit.waiting import wait_until


def test_missing_jars_are_told_with_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError, match=r"no jars in .*: run `mvn -f .*/jvm/pom\.xml package`"):
        start_session(Settings(jars=tmp_path))


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    """A directory of two jars."""
    for name in ("b.jar", "a.jar"):
        (tmp_path / name).touch()
    return tmp_path


def test_options_for_java_stand_beside_the_services_own(jars: Path) -> None:
    options = configuration(Settings(jars=jars, driver_memory="2g", java_options="-Xlog"), is_local=True)

    *java_log, logging, compiling, cache, region, marking, adaptive, extra = options[
        "spark.driver.extraJavaOptions"
    ].split()
    assert java_log == JVM_LOG.split()
    assert logging == f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    assert (compiling, cache, extra) == (COMPILE_ALL, CODE_CACHE, "-Xlog")
    assert f"{region} {marking} {adaptive}" == COLLECTOR
    assert options["spark.executor.extraJavaOptions"] == f"{COMPILE_ALL} {CODE_CACHE} {COLLECTOR} -Xlog"
    assert options["spark.driver.memory"] == "2g"
    assert LOGGING.exists()


def test_the_drivers_class_path_is_every_jar_in_one_order(jars: Path) -> None:
    path = configuration(Settings(jars=jars), is_local=True)["spark.driver.defaultExtraClassPath"].split(":")

    assert path[-2:] == [f"{jars}/a.jar", f"{jars}/b.jar"]
    assert path[:-2] == sorted(path[:-2])
    assert any(Path(each).name.startswith("spark-core_") for each in path)


def test_executors_elsewhere_get_the_jars_from_the_driver(jars: Path) -> None:
    assert configuration(Settings(jars=jars), is_local=False)["spark.jars"] == f"{jars}/a.jar,{jars}/b.jar"


def test_an_archive_of_classes_beside_the_jars_is_used(jars: Path) -> None:
    without = configuration(Settings(jars=jars), is_local=True)["spark.driver.extraJavaOptions"]
    (jars / CLASS_ARCHIVE).touch()
    using = configuration(Settings(jars=jars), is_local=True)["spark.driver.extraJavaOptions"]

    assert "-XX:SharedArchiveFile" not in without
    assert f"-XX:SharedArchiveFile={jars / CLASS_ARCHIVE}" in using.split()


def test_it_waits_until_enough_executors_have_come_and_says_how_many_are_missing() -> None:
    offered, reasons = iter([12, 24]), list[str]()

    assert wait_while_missing(lambda: missing_slots(next(offered), 20), lambda _: False, reasons.append, 0.25)
    assert reasons == ["the executors give 12 task slots, the pipelines need 20: add workers or cores"]


def test_spark_knows_the_settings_that_it_is_given(spark: SparkSession) -> None:
    find = cast(Any, spark._jvm).org.apache.spark.internal.config.ConfigEntry.findEntry
    # Hadoop's own, and those that the state's provider and Kafka's source read by themselves.
    free = ("spark.hadoop.", "spark.sql.streaming.stateStore.rocksdb.", "spark.kafka.")

    unknown = [name for name in yaml.safe_load(SPARK_SETTINGS.read_text()) if find(name) is None]

    assert [name for name in unknown if not name.startswith(free)] == []


def test_the_running_session_keeps_the_code_of_many_pipelines(spark: SparkSession) -> None:
    jvm = cast(Any, spark._jvm)
    entries = jvm.org.apache.spark.sql.internal.SQLConf.get().codegenCacheMaxEntries()

    assert entries == 20_000


def test_the_plans_of_past_batches_are_forgotten(spark: SparkSession) -> None:
    executions = cast(Any, spark)._jsparkSession.sharedState().statusStore()
    for _ in range(10):
        spark.range(1).collect()
    cast(Any, spark.sparkContext._jsc).sc().listenerBus().waitUntilEmpty()

    wait_until(lambda: executions.executionsCount() <= 2, lambda: f"{executions.executionsCount()} are kept")


def test_the_jvm_is_asked_once_for_a_name(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    jvm, asked = cast(Any, spark)._jvm, list[str]()
    send = jvm._gateway_client.send_command
    assert list(jvm.java.util.Collections.emptyList()) == []

    def noting(command: str, *others: Any, **named: Any) -> Any:
        asked.append(command)
        return send(command, *others, **named)

    monkeypatch.setattr(jvm._gateway_client, "send_command", noting)
    jvm.java.util.Collections.emptyList()

    calls = [command for command in asked if "emptyList" in command]
    assert len(calls) == 1
    assert [command for command in asked if command.startswith(REFLECTION_COMMAND_NAME)] == []


def test_a_local_master_gives_the_slots_of_its_name(spark: SparkSession) -> None:
    assert task_slots(spark) == (2, 0)


class Gone:
    """A Spark, or a query, after the end of its JVM: everything raises."""

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


def test_queries_are_stopped_side_by_side_and_one_that_does_not_stop_is_passed_over() -> None:
    query = Stoppable()

    stop_queries(cast(Any, [Gone(), query]))

    assert query.stopped


def test_a_drain_of_what_is_gone_is_told_and_no_failure() -> None:
    with capture_logs() as events:
        drain(cast(Any, Gone()), cast(Any, [Gone()]), timeout_s=1)

    assert [each["event"] for each in events] == ["not drained"]


def test_no_time_is_no_drain() -> None:
    with capture_logs() as events:
        drain(cast(Any, Gone()), cast(Any, [Gone()]), timeout_s=0)

    assert events == []


@pytest.mark.parametrize(
    ("looks", "timeout_s", "event"),
    [(3, 60.0, "drained"), (1000, 0.1, "some queries stop without a last checkpoint")],
)
def test_a_drain_waits_for_the_queries_until_its_time_is_over(looks: int, timeout_s: float, event: str) -> None:
    query = MagicMock()
    query.name = "q"
    query._jsq.streamingQuery().queryExecutionThread().isAlive.side_effect = [True] * looks + [False]

    with capture_logs() as events:
        drain(MagicMock(), [query], timeout_s=timeout_s)

    assert events[0]["event"] == event
    assert events[0].get("queries", ["q"]) == ["q"]
