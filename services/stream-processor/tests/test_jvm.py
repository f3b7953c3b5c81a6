"""The Java functions against the Spark that runs, which Maven need not have."""

import subprocess
from pathlib import Path

import pyspark
import pytest

from stream_processor.settings import JARS

SOURCES = Path(__file__).parents[1] / "jvm" / "src" / "main" / "java"


@pytest.mark.spark
def test_the_sources_compile_against_the_spark_that_runs(tmp_path: Path) -> None:
    own = next(JARS.glob("spark-functions-*.jar"))
    protobuf = next((Path.home() / ".m2").rglob("protobuf-java-4.*.jar"))
    spark = Path(pyspark.__file__).parent / "jars"
    others = [jar for jar in JARS.glob("*.jar") if jar != own]
    path = ":".join(map(str, [spark / "*", protobuf, *others]))

    compiled = subprocess.run(
        ["javac", "-proc:none", "-nowarn", "-d", str(tmp_path), "-cp", path, *map(str, SOURCES.rglob("*.java"))],
        capture_output=True,
        text=True,
        check=False,
    )

    assert compiled.returncode == 0, compiled.stderr
