"""One instance per data directory."""

from pathlib import Path

import pytest

from query_service.errors import DataDirectoryError
from query_service.storage import data_lock


def take(directory: Path) -> None:
    """Takes the directory and lets it go at once."""
    with data_lock.held(directory):
        assert directory.is_dir()


def test_a_second_instance_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    with data_lock.held(tmp_path / "data"), pytest.raises(DataDirectoryError, match="another instance uses it"):
        take(tmp_path / "data")

    take(tmp_path / "data")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(DataDirectoryError, match=r"QUERY_SERVICE_DATA_DIRECTORY=.*cannot be written to"):
        take(tmp_path / "file" / "data")
