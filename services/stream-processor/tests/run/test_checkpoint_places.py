"""The places of checkpoints, as a directory and through Hadoop, and the lease."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from statecast_service.errors import SettingsError
from stream_processor.errors import CheckpointsTakenError, CheckpointsUnusableError
from stream_processor.run.checkpoints import (
    ABANDONED_S,
    LEASE_NOTE,
    RENEW_S,
    Checkpoints,
    LeasedCheckpoints,
    LocalFiles,
    open_checkpoints,
)

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


PLACE = "s3a://bucket/place"
NOTE = f"{PLACE}/{LEASE_NOTE}"


class MemoryFiles(LocalFiles):
    """Files that can be made to fail."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.fail = False

    def exists(self, path: str) -> bool:
        if self.fail:
            raise OSError("out of reach")
        return path in self.held

    def read(self, path: str) -> bytes:
        return self.held[path]

    def replace(self, path: str, content: bytes) -> None:
        self.held[path] = content


class Time:
    """A clock that moves on when a lease pauses, and then calls `then`, in which others may act."""

    def __init__(self) -> None:
        self.now = 0.0
        self.then: Callable[[], object] = lambda: None

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.then()


@pytest.fixture
def files() -> MemoryFiles:
    return MemoryFiles()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def make(files: MemoryFiles, time: Time) -> Callable[[], LeasedCheckpoints]:
    """Makes the lease of another process at each call."""
    return lambda: LeasedCheckpoints(PLACE, files, lambda: time.now, time.pause)


def test_a_free_one_is_taken_at_once(make: Callable[[], LeasedCheckpoints], time: Time, files: MemoryFiles) -> None:
    make().take()

    assert time.now == 0
    assert json.loads(files.held[NOTE]).keys() == {"process", "token", "renewals"}


def test_one_that_is_renewed_is_refused_and_its_holder_named(make: Callable[[], LeasedCheckpoints], time: Time) -> None:
    first = make()
    first.take()
    time.then = first.renew

    with pytest.raises(SettingsError, match=r"another process, .*, process \d+, works on s3a://bucket/place"):
        make().take()
    assert time.now <= RENEW_S
    first.check()


def test_one_that_the_last_release_renews_is_refused(
    make: Callable[[], LeasedCheckpoints], time: Time, files: MemoryFiles
) -> None:
    """If this fails, two processors work on one place during an upgrade (docs/compatibility.md)."""

    def renew() -> None:
        note = {"process": "host-1, process 7", "token": "a", "renewals": round(time.now * 2), "of a later release": 1}
        files.held[f"{PLACE}/lease.json"] = json.dumps(note).encode()

    renew()
    time.then = renew

    with pytest.raises(SettingsError, match="another process, host-1, process 7, works on"):
        make().take()


@pytest.mark.parametrize("note", [b'{"token": "a", "renewals": 3}', b"{"])
def test_a_note_that_names_no_process_is_refused_with_what_to_do(
    make: Callable[[], LeasedCheckpoints], files: MemoryFiles, note: bytes
) -> None:
    files.held[NOTE] = note

    with pytest.raises(CheckpointsUnusableError, match=rf"^{NOTE} .*: delete it once no process works on {PLACE}$"):
        make().take()


def test_one_that_nobody_renews_is_taken_after_a_time(make: Callable[[], LeasedCheckpoints], time: Time) -> None:
    first, second = make(), make()
    first.take()

    second.take()

    assert time.now == ABANDONED_S

    first.renew()

    with pytest.raises(CheckpointsTakenError, match="no longer this process's"):
        first.check()
    second.renew()
    second.check()


def test_one_that_is_given_back_is_free(make: Callable[[], LeasedCheckpoints], time: Time) -> None:
    first = make()
    with first.hold():
        pass

    make().take()

    assert time.now == 0


def test_a_note_that_is_just_being_replaced_is_not_a_free_one(
    make: Callable[[], LeasedCheckpoints], time: Time, files: MemoryFiles
) -> None:
    first = make()
    first.take()
    content = json.loads(files.held[NOTE])

    def replace() -> None:
        if files.held.pop(NOTE, None) is None:
            files.held[NOTE] = json.dumps({**content, "renewals": 9}).encode()

    time.then = replace
    with pytest.raises(SettingsError, match="another process"):
        make().take()


def test_one_that_cannot_be_renewed_is_lost_when_others_may_take_it(
    make: Callable[[], LeasedCheckpoints], time: Time, files: MemoryFiles
) -> None:
    lease = make()
    lease.take()
    files.fail = True
    time.now = ABANDONED_S - 1
    lease.renew()
    lease.check()
    time.now = ABANDONED_S
    lease.renew()

    with pytest.raises(CheckpointsTakenError, match="out of reach"):
        lease.check()
