"""Removes the files of an installed PySpark that the processor never loads: `slim_pyspark.py …/site-packages/pyspark`.

It runs in the stage of the image's build that installs PySpark. It keeps all files that run pipelines, and those
with which a driver starts executors on Kubernetes or uses those of a standalone cluster.
"""

import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

UNUSED_JARS = {
    "machine learning and graphs": """
        spark-mllib*.jar spark-graphx_*.jar breeze*.jar spire*.jar cats-kernel_*.jar algebra_*.jar lapack-*.jar
        blas-*.jar arpack*.jar JTransforms-*.jar JLargeArrays-*.jar
    """,
    "Hive's tables; hive-storage-api stays, because ORC's reader is registered with Spark's own": """
        spark-hive*.jar hive-beeline-*.jar hive-cli-*.jar hive-common-*.jar hive-exec-*.jar hive-jdbc-*.jar
        hive-metastore-*.jar hive-serde-*.jar hive-service-rpc-*.jar hive-shims-*.jar derby*.jar datanucleus-*.jar
        javax.jdo-*.jar jdo-api-*.jar jta-*.jar transaction-api-*.jar HikariCP-*.jar commons-dbcp-*.jar
        commons-pool-*.jar libfb303-*.jar libthrift-*.jar jpam-*.jar opencsv-*.jar super-csv-*.jar stax-api-*.jar
        javolution-*.jar
    """,
    "Spark Connect and its declarative pipelines": "connect-repl spark-connect_*.jar spark-pipelines_*.jar",
    "the shells": "spark-repl_*.jar scala-compiler-*.jar jline-*.jar",
    "YARN": "spark-yarn_*.jar",
    "other operating systems": "netty-*-osx-*.jar netty-*-windows-*.jar netty-*-linux-riscv64.jar",
}
"""Patterns of names in `jars/`, by purpose. Each must match something, so that a new Spark is looked at."""

UNUSED_DIRECTORIES = ("data", "examples")
ROCKSDB_NATIVES = ("librocksdbjni-linux64.so", "librocksdbjni-linux-aarch64.so")
"""RocksDB's libraries for Linux with glibc; its jar has a dozen more, of 5 MB each."""
NATIVE_SUFFIXES = (".so", ".dll", ".jnilib")


def slim(pyspark: Path) -> None:
    """Removes the unused parts of the package. Raises LookupError, naming it, for a part that is not there."""
    jars = pyspark / "jars"
    for pattern in " ".join(UNUSED_JARS.values()).split():
        unused = sorted(jars.glob(pattern))
        if not unused:
            raise LookupError(f"{jars} has no {pattern}: look at what this version of Spark brings instead")
        for path in unused:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name in UNUSED_DIRECTORIES:
        shutil.rmtree(pyspark / name)
    (rocksdb,) = jars.glob("rocksdbjni-*.jar")
    rewrite(rocksdb, lambda name: not name.endswith(NATIVE_SUFFIXES) or name in ROCKSDB_NATIVES)


def rewrite(jar: Path, keeps: Callable[[str], bool]) -> None:
    """Replaces a jar by one with those of its entries that `keeps` is true for."""
    smaller = jar.with_suffix(".smaller")
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(smaller, "w", zipfile.ZIP_DEFLATED) as target:
        for entry in source.infolist():
            if keeps(entry.filename):
                target.writestr(entry, source.read(entry))
    smaller.replace(jar)


if __name__ == "__main__":
    slim(Path(sys.argv[1]))
