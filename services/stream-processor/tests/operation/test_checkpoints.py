"""The place of the checkpoints, in both of its forms."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stream_processor.errors import CheckpointsUnusableError, SettingsError
from stream_processor.operation.checkpoints import Checkpoints, open_checkpoints

Opener = Callable[[str], Checkpoints]


def no_spark() -> SparkSession:
    raise AssertionError("a local directory needs no Spark")


@pytest.fixture(params=["directory", pytest.param("uri", marks=pytest.mark.spark)])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    """Opens a place of this test by its name: as a directory, or through Hadoop."""
    if request.param == "directory":
        return lambda name: open_checkpoints(str(tmp_path / name), no_spark)
    spark: SparkSession = request.getfixturevalue("spark")
    return lambda name: open_checkpoints((tmp_path / name).as_uri(), lambda: spark)


def test_a_note_is_what_was_written_last(opener: Opener) -> None:
    checkpoints = opener("new/place")

    assert checkpoints.read("a.json") is None

    checkpoints.replace("a.json", {"end": 1})
    checkpoints.replace("a.json", {"end": 2, "name": "Zürich"})

    assert opener("new/place").read("a.json") == {"end": 2, "name": "Zürich"}


def test_a_query_has_a_checkpoint_once_there_is_something(opener: Opener, tmp_path: Path) -> None:
    checkpoints = opener("place")

    assert not checkpoints.exists("orders-by-key")

    (tmp_path / "place" / "orders-by-key").mkdir(parents=True)

    assert checkpoints.exists("orders-by-key")
    assert checkpoints.location("orders-by-key").endswith(f"{tmp_path}/place/orders-by-key")


def test_a_second_process_is_refused_while_the_first_holds_the_place(opener: Opener) -> None:
    first = opener("place")
    with first.hold():
        with (
            pytest.raises(SettingsError, match=r"STREAM_PROCESSOR_CHECKPOINTS: another process.* works on"),
            opener("place").hold(),
        ):
            pass
        first.check()

    with opener("place").hold():
        pass


def test_a_place_that_cannot_be_made_is_named(opener: Opener, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(CheckpointsUnusableError) as caught, opener("file").hold():
        pass

    assert str(caught.value).startswith("STREAM_PROCESSOR_CHECKPOINTS: cannot ")
    assert f"{tmp_path}/file" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.spark
@pytest.mark.parametrize("uri", ["s3a://bucket/place", "nowhere://host/place"])
def test_a_file_system_that_is_not_on_the_class_path_is_one_line(spark: SparkSession, uri: str) -> None:
    with pytest.raises(CheckpointsUnusableError) as caught:
        open_checkpoints(uri, lambda: spark)

    assert str(caught.value).startswith(f"STREAM_PROCESSOR_CHECKPOINTS: cannot use {uri}: ")
    assert "\n" not in str(caught.value)
