"""The archive of classes: starts take their classes from it, or do without."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stream_processor.run.session import CLASS_ARCHIVE
from stream_processor.settings import JARS
from testkit.repository_files import DOMAINS
from testkit.waiting import scaled

PIPELINE = DOMAINS / "orders" / "orders-by-key.yaml"
TIMEOUT_S = 240.0
OF_SPARK = "org.apache.spark.sql.classic.SparkSession"

pytestmark = [pytest.mark.spark, pytest.mark.timeout(2 * TIMEOUT_S)]


def run(command: str, jars: Path, java_options: str = "") -> str:
    """Runs a command of the program with these jars, and returns its standard error."""
    settings = {"STREAM_PROCESSOR_JARS": str(jars), "STREAM_PROCESSOR_JAVA_OPTIONS": java_options}
    finished = subprocess.run(
        [sys.executable, "-m", "stream_processor", command, str(PIPELINE)],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
        timeout=scaled(TIMEOUT_S),
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stderr


@pytest.fixture(scope="module")
def archived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of the jars with an archive: the installation's own, or one that is made there."""
    if (JARS / CLASS_ARCHIVE).exists():
        return JARS
    jars = tmp_path_factory.mktemp("archived") / "jars"
    shutil.copytree(JARS, jars)
    run("archive-classes", jars)
    return jars


def test_a_start_takes_the_classes_of_spark_from_the_archive(archived: Path, tmp_path: Path) -> None:
    loaded = tmp_path / "loaded"

    run("explain", archived, f"-Xlog:class+load:file={loaded}")

    of_spark = [line for line in loaded.read_text().splitlines() if f" {OF_SPARK} " in line]
    assert len(of_spark) == 1
    assert "shared objects file (top)" in of_spark[0]


def test_an_archive_of_other_jars_is_told_and_passed_over(archived: Path, tmp_path: Path) -> None:
    others = tmp_path / "jars"
    shutil.copytree(archived, others)

    assert "Unable to use shared archive" in run("explain", others)
