"""The pipeline and the store of docs/examples/game go together; its players' view is tested at the edge."""

from pathlib import Path

import pytest
import yaml

from statecast_domains.pipeline_file import read
from statecast_domains.store_definition import keyed_store
from stream_processor.__main__ import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "game"


def test_the_pipeline_is_sound_with_the_mounted_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECAST_DESCRIPTORS", str(EXAMPLE / "messages"))

    assert main(["check", str(EXAMPLE / "pipelines" / "games-by-key.yaml")]) == 0


def test_the_store_follows_from_the_pipeline() -> None:
    store = keyed_store(read(EXAMPLE / "pipelines" / "games-by-key.yaml"))

    assert yaml.safe_load((EXAMPLE / "stores.yaml").read_text())["stores"] == [store.entry]
