"""The files that the image removes from PySpark."""

import importlib.util
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / "image" / "slim_pyspark.py"
NATIVE = "librocksdbjni-linux64.so"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("slim_pyspark", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def pyspark(script: ModuleType, tmp_path: Path) -> Path:
    """A package with one jar for each pattern, and those that stay."""
    jars = tmp_path / "jars"
    jars.mkdir()
    for pattern in " ".join(script.UNUSED_JARS.values()).split():
        (jars / pattern.replace("*", "-9")).touch()
    for name in ("spark-core_2.13-9.jar", "spark-kubernetes_2.13-9.jar", "hive-storage-api-9.jar"):
        (jars / name).touch()
    for name in script.UNUSED_DIRECTORIES:
        (tmp_path / name).mkdir()
    with zipfile.ZipFile(jars / "rocksdbjni-9.jar", "w") as jar:
        for name in (NATIVE, "librocksdbjni-win64.dll", "org/rocksdb/RocksDB.class"):
            jar.writestr(name, name)
    return tmp_path


def test_only_what_the_processor_uses_is_left(script: ModuleType, pyspark: Path) -> None:
    script.slim(pyspark)

    names = {path.name for path in (pyspark / "jars").iterdir()}
    assert names == {
        "spark-core_2.13-9.jar",
        "spark-kubernetes_2.13-9.jar",
        "hive-storage-api-9.jar",
        "rocksdbjni-9.jar",
    }
    assert {path.name for path in pyspark.iterdir()} == {"jars"}
    with zipfile.ZipFile(pyspark / "jars" / "rocksdbjni-9.jar") as jar:
        assert jar.namelist() == [NATIVE, "org/rocksdb/RocksDB.class"]
        assert jar.read(NATIVE).decode() == NATIVE


def test_a_part_that_a_new_spark_does_not_have_is_named(script: ModuleType, pyspark: Path) -> None:
    next((pyspark / "jars").glob("breeze*")).unlink()

    with pytest.raises(LookupError, match=r"breeze\*\.jar"):
        script.slim(pyspark)


def test_the_installed_spark_has_all_those_parts(script: ModuleType) -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"

    assert [each for each in " ".join(script.UNUSED_JARS.values()).split() if not any(jars.glob(each))] == []
    assert all((jars.parent / name).is_dir() for name in script.UNUSED_DIRECTORIES)
