"""What lies on disk survives its process."""

import subprocess
import sys
from pathlib import Path

import pytest
from rocksdict import Options, Rdict

from query_service.storage.rocksdb_engine import RocksdbEngine

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
