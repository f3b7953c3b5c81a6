"""The pipeline and the stores of docs/examples/game go together; what its players see is tested at the edge."""

from pathlib import Path

import pytest
import yaml

from statecast_domains.derived_files import edge_entry
from statecast_domains.pipeline_file import read
from statecast_domains.store_definition import keyed_store
from stream_processor.__main__ import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "game"


def test_the_pipeline_is_sound_with_the_mounted_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECAST_DESCRIPTORS", str(EXAMPLE / "messages"))

    assert main(["check", str(EXAMPLE / "pipelines" / "games-by-key.yaml")]) == 0


def test_the_stores_of_both_services_follow_from_the_pipeline() -> None:
    store = keyed_store(read(EXAMPLE / "pipelines" / "games-by-key.yaml"))
    edge, query = (
        yaml.safe_load((EXAMPLE / name).read_text())["stores"] for name in ("edge-stores.yaml", "query-stores.yaml")
    )

    assert edge == [edge_entry(store)]
    assert query == [store.entry]
