"""The bytes of the data directory, by kind."""

from pathlib import Path

from query_service.cluster.disk_watch import bytes_by_kind
from testkit.query_service import OpenDirectory, store_definition


def test_each_file_counts_once_by_its_kind(open_directory: OpenDirectory, tmp_path: Path) -> None:
    root, directory = tmp_path / "data", open_directory()
    stores = [directory.open(store_definition(), "id", partition, 0) for partition in range(3)]
    (root / ".checkpoints").mkdir()
    stores[0].checkpoint(root / ".checkpoints" / "one")
    (root / ".checkpoints" / "one" / "own").write_bytes(b"x" * 1000)
    for store in stores[1:]:
        store.close()
    directory.discard(store_definition(), 2, "a test says so")
    sizes = bytes_by_kind(root, {("s", 0)})

    assert sizes["held"] > 0
    assert sizes["released"] == sum(file.stat().st_size for file in (root / "s" / "1").iterdir())
    assert sizes["set-aside"] == sum(file.stat().st_size for file in (root / "set-aside").rglob("*") if file.is_file())
    assert sizes["unfinished"] == 0
    shared = {file.stat().st_ino for file in (root / "s" / "0").iterdir()}
    own = [file for file in (root / ".checkpoints" / "one").iterdir() if file.stat().st_ino not in shared]
    assert sizes["checkpoints"] == sum(file.stat().st_size for file in own) >= 1000
    stores[0].close()


def test_a_directory_that_is_not_there_yet_is_empty(tmp_path: Path) -> None:
    assert set(bytes_by_kind(tmp_path / "none", ()).values()) == {0}


def test_entries_that_cannot_be_read_count_as_nothing(tmp_path: Path) -> None:
    """A volume has a `lost+found` of root, and people leave links."""
    (tmp_path / "lost+found").symlink_to("lost+found")
    (tmp_path / "orders" / "0").mkdir(parents=True)
    (tmp_path / "orders" / "0" / "CURRENT").write_bytes(b"x" * 10)
    (tmp_path / "orders" / "1").symlink_to("1")

    assert bytes_by_kind(tmp_path, {("orders", 0)})["held"] == 10
