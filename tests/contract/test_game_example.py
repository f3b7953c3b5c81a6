"""The pipeline and the stores of docs/examples/game go together; what its players see is tested at the edge."""

from pathlib import Path

import pytest
import yaml

from stream_processor.__main__ import main

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "game"


def test_the_pipeline_is_sound_with_the_mounted_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STATECAST_DESCRIPTORS", str(EXAMPLE / "messages"))

    assert main(["check", str(EXAMPLE / "pipelines" / "games-by-key.yaml")]) == 0


def test_both_services_serve_what_the_pipeline_writes() -> None:
    pipeline = yaml.safe_load((EXAMPLE / "pipelines" / "games-by-key.yaml").read_text())
    (edge,), (query,) = (
        yaml.safe_load((EXAMPLE / name).read_text())["stores"] for name in ("edge-stores.yaml", "query-stores.yaml")
    )

    assert query["topic"] == pipeline["sink"]["topic"]
    assert (edge["name"], edge["message"]) == (query["name"], query["message"])
