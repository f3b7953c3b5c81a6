"""One process per checkpoint directory."""

from pathlib import Path

import pytest

from stream_processor.errors import SettingsError
from stream_processor.operation.checkpoint_lock import lock


def test_a_second_one_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    with (
        lock(tmp_path / "new"),
        pytest.raises(SettingsError, match="STREAM_PROCESSOR_CHECKPOINTS: another process"),
        lock(tmp_path / "new"),
    ):
        pass
    with lock(tmp_path / "new"):
        pass


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(SettingsError, match="STREAM_PROCESSOR_CHECKPOINTS: cannot write"), lock(tmp_path / "file"):
        pass
