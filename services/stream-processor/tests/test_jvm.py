"""The Java functions against the Spark that runs, which Maven need not have."""

import subprocess
import zipfile
from pathlib import Path

import pyspark
import pytest

from stream_processor.settings import JARS

SHADED = ("protobuf-java-4.*.jar", "spark-sql-kafka-0-10_2.13-4.*.jar")
SOURCES = Path(__file__).parents[1] / "jvm" / "src" / "main" / "java"


@pytest.mark.spark
def test_the_sources_compile_against_the_spark_that_runs(tmp_path: Path) -> None:
    own = next(JARS.glob("spark-functions-*.jar"))
    # Those that are parts of the own jar.
    shaded = [next((Path.home() / ".m2").rglob(name)) for name in SHADED]
    spark = Path(pyspark.__file__).parent / "jars"
    others = [jar for jar in JARS.glob("*.jar") if jar != own]
    path = ":".join(map(str, [spark / "*", *shaded, *others]))

    compiled = subprocess.run(
        ["javac", "-proc:none", "-nowarn", "-d", str(tmp_path), "-cp", path, *map(str, SOURCES.rglob("*.java"))],
        capture_output=True,
        text=True,
        check=False,
    )

    assert compiled.returncode == 0, compiled.stderr


@pytest.mark.spark
def test_the_jar_tells_no_time_of_its_build() -> None:
    """If this fails, nobody can build the wheel of a release again: `make e2e-upgrade` does."""
    own = {str(file.relative_to(SOURCES).with_suffix(".class")) for file in SOURCES.rglob("*.java")}
    with zipfile.ZipFile(next(JARS.glob("spark-functions-*.jar"))) as jar:
        times = {entry.date_time for entry in jar.infolist() if entry.filename in own}

    assert times == {(2024, 1, 1, 0, 0, 0)}
