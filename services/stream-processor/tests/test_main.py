"""The program's commands and exit statuses."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from stream_processor.__main__ import main

pytestmark = pytest.mark.usefixtures("own_logging")

PIPELINES = sorted((Path(__file__).parents[1] / "pipelines").glob("*.yaml"))


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Takes back the logging that the program sets up, which writes to what pytest closes."""
    yield
    structlog.reset_defaults()


def test_the_shipped_pipelines_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *map(str, PIPELINES)]) == 0

    told = capsys.readouterr().err
    assert all(file.name in told for file in PIPELINES)


def test_a_wrong_file_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(PIPELINES[0].read_text().replace("group_by", "grup_by"))

    assert main(["check", str(wrong)]) == 2

    assert capsys.readouterr().err == f"stream-processor: {wrong}: grup_by: unknown key; did you mean group_by?\n"


def test_a_wrong_setting_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_METRICS_PORT", "x")

    assert main(["run", str(PIPELINES[0])]) == 2

    told = capsys.readouterr().err
    assert told.startswith("stream-processor: STREAM_PROCESSOR_METRICS_PORT: ")
    assert told.count("\n") == 1


def test_accepting_needs_a_broker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_KAFKA_BOOTSTRAP", "127.0.0.1:1")

    assert main(["accept-dead-letters", str(PIPELINES[0])]) == 2

    assert "no answer from Kafka at 127.0.0.1:1" in capsys.readouterr().err


def test_the_same_file_twice_is_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(PIPELINES[0]), str(PIPELINES[0])]) == 0

    assert capsys.readouterr().err.count(PIPELINES[0].name) == 1
