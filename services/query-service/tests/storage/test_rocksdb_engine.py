"""Rows on disk survive their process."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from query_service.errors import ColdError
from query_service.storage.rocksdb_engine import Disk, RocksdbEngine, RocksdbOpener

WRITER = """
import os, signal, sys
from rocksdict import Options, Rdict
from query_service.storage.rocksdb_engine import RocksdbEngine
engine = RocksdbEngine(Rdict(sys.argv[1], Options(raw_mode=True)))
for number in range(1000):
    engine.write([(b"%04d" % number, b"fast")], durable=False)
if sys.argv[2] == "settled":
    engine.write([(b"settled", b"yes")])
os.kill(os.getpid(), signal.SIGKILL)
"""


def left_by_a_killed_writer(path: Path, ending: str) -> RocksdbEngine:
    killed = subprocess.run([sys.executable, "-c", WRITER, str(path), ending], check=False)
    assert killed.returncode == -9
    return RocksdbEngine(Rdict(str(path), Options(raw_mode=True)))


def test_a_durable_write_survives_a_kill_with_all_that_came_before(tmp_path: Path) -> None:
    engine = left_by_a_killed_writer(tmp_path / "db", "settled")

    assert len(list(engine.scan(b"0", b"9"))) == 1000
    assert engine.get_many([b"settled"]) == [b"yes"]
    engine.close()


def test_after_a_kill_fast_writes_are_there_up_to_some_write(tmp_path: Path) -> None:
    engine = left_by_a_killed_writer(tmp_path / "db", "open")
    keys = [key for key, _ in engine.scan(b"0", b"9")]

    assert keys == [b"%04d" % number for number in range(len(keys))]
    assert engine.get_many([b"settled"]) == [None]
    engine.close()


@pytest.mark.parametrize("durable", [True, False])
def test_removals_follow_the_puts_of_a_write(tmp_path: Path, durable: bool) -> None:
    engine = RocksdbEngine(Rdict(str(tmp_path / "db"), Options(raw_mode=True)))
    engine.write([(b"a", b"1"), (b"a", b"2"), (b"b", b"1")], [b"b"], durable=durable)

    assert engine.get_many([b"a", b"b"]) == [b"2", None]
    engine.close()


def test_fast_writes_survive_an_orderly_end(tmp_path: Path) -> None:
    engine = RocksdbEngine(Rdict(str(tmp_path / "db"), Options(raw_mode=True)))
    engine.write([(b"a", b"1")], durable=False)
    engine.close()
    again = RocksdbEngine(Rdict(str(tmp_path / "db"), Options(raw_mode=True)))

    assert again.get_many([b"a"]) == [b"1"]
    again.close()


KEYS = [b"%04d" % number for number in range(1000)]


def cold_path(path: Path) -> Path:
    """Returns a database of 1,000 rows that no process has read."""
    engine = RocksdbOpener(8 << 20, 8 << 20).open(path)
    engine.write([(key, b"row") for key in KEYS])
    engine.close()
    return path


def slow_disk() -> Disk:
    disk = Disk()
    disk.note(1.0)
    disk.note(1.0)
    return disk


def test_many_keys_are_at_hand_once_they_have_been_read(tmp_path: Path) -> None:
    engine = RocksdbOpener(8 << 20, 8 << 20).open(cold_path(tmp_path / "db"))

    assert not engine.is_at_hand(KEYS)

    engine.get_many(KEYS)

    assert engine.is_at_hand(KEYS)
    engine.close()


def test_a_key_is_read_at_once_unless_the_disk_is_slow(tmp_path: Path) -> None:
    disk = Disk()
    disk.note(1.0)  # once, as when something else had the processor
    engine = RocksdbEngine(Rdict(str(cold_path(tmp_path / "db")), Options(raw_mode=True)), disk)

    assert engine.get(KEYS[500]) == b"row"
    assert engine.get(b"none") is None
    engine.close()


def test_while_the_disk_is_slow_a_key_is_read_only_from_caches(tmp_path: Path) -> None:
    engine = RocksdbEngine(Rdict(str(cold_path(tmp_path / "db")), Options(raw_mode=True)), slow_disk())
    engine.write([(KEYS[5], b"newer")])

    assert engine.get(KEYS[5]) == b"newer"
    with pytest.raises(ColdError):
        engine.get(KEYS[500])

    engine.get_many([KEYS[500]])

    assert engine.get(KEYS[500]) == b"row"
    engine.close()


def test_a_slow_disk_counts_as_fast_again_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    disk, later = slow_disk(), time.monotonic() + 1.1
    assert disk.is_slow

    monkeypatch.setattr("query_service.storage.rocksdb_engine.time.monotonic", lambda: later)

    assert not disk.is_slow


def memory_kb(engine: RocksdbEngine) -> int:
    size = engine._database.property_value("rocksdb.cur-size-all-mem-tables")
    assert size is not None
    return int(size) >> 10


def test_a_database_at_rest_takes_little_memory_also_after_a_restore(tmp_path: Path) -> None:
    """An instance may hold hundreds of them."""
    engine = RocksdbOpener(1 << 20, 8 << 20).open(tmp_path / "db")
    engine.write([(b"a", b"note")])
    new = memory_kb(engine)
    engine.write([(b"b", b"row")], durable=False)
    engine.write([(b"c", b"row")])

    assert engine.get_many([b"a", b"b", b"c"]) == [b"note", b"row", b"row"]
    assert max(new, memory_kb(engine)) < 100
    engine.close()
