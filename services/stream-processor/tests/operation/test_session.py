"""The settings of Spark."""

from pathlib import Path

import pytest

from stream_processor.errors import NotBuiltError
from stream_processor.operation.session import COMPILE_ALL, LOGGING, configuration, start_session


def test_missing_jars_are_told_with_the_command_that_makes_them(tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError, match=r"no jars in .*: run `mvn -f .*/jvm/pom\.xml package`"):
        start_session("local[1]", tmp_path, "1g")


def test_options_for_java_stand_beside_the_services_own() -> None:
    options = configuration([Path("/a.jar"), Path("/b.jar")], "2g", "-Xlog")

    logging, compiling, given = options["spark.driver.extraJavaOptions"].split()
    assert logging == f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    assert (compiling, given) == (COMPILE_ALL, "-Xlog")
    assert options["spark.executor.extraJavaOptions"] == f"{COMPILE_ALL} -Xlog"
    assert options["spark.jars"] == "/a.jar,/b.jar"
    assert options["spark.driver.memory"] == "2g"
    assert LOGGING.exists()
