"""The program's commands and exit statuses."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from statecast_domains.directories import pipeline_files
from stream_processor.__main__ import main
from testkit.repository_files import DOMAINS

pytestmark = pytest.mark.usefixtures("own_logging")

PIPELINES = pipeline_files([DOMAINS])


@pytest.fixture
def own_logging() -> Iterator[None]:
    """Takes back the logging that the program sets up: it writes to streams that pytest closes."""
    yield
    structlog.reset_defaults()


def test_the_shipped_pipelines_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", *map(str, PIPELINES)]) == 0

    error = capsys.readouterr().err
    assert all(file.name in error for file in PIPELINES)


def test_a_wrong_file_is_one_line_and_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(PIPELINES[0].read_text().replace("group_by", "grup_by"))

    assert main(["check", str(wrong)]) == 2

    assert capsys.readouterr().err == f"stream-processor: {wrong}: grup_by: unknown key; did you mean group_by?\n"


def test_a_statement_in_place_of_a_condition_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(PIPELINES[0].read_text() + "where: show tables\n")

    assert main(["check", str(wrong)]) == 2

    assert capsys.readouterr().err == f"stream-processor: {wrong}: where: is not a SQL expression: 'show tables'\n"
    assert caplog.messages == []


def test_checking_tells_of_each_wrong_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / f"{number}.yaml" for number in range(3)]
    for file, old in zip(files, ("group_by", "keep", "none"), strict=True):
        file.write_text(PIPELINES[0].read_text().replace(old, f"{old}s"))

    assert main(["check", *map(str, files)]) == 2

    errors = capsys.readouterr().err.splitlines()
    assert errors[0] == f"stream-processor: {files[0]}: group_bys: unknown key; did you mean group_by?"
    assert errors[1] == f"stream-processor: {files[1]}: keeps: unknown key; did you mean keep?"
    assert len(errors) == 3


def test_checking_tells_of_files_that_cannot_run_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    twin = tmp_path / "twin.yaml"
    twin.write_text(PIPELINES[0].read_text())

    assert main(["check", str(PIPELINES[0]), str(twin)]) == 2

    assert f"{twin}: name: bookings-by-customer is also the name of" in capsys.readouterr().err


EVENTS = """\
name: last-sales
source: {topic: sales, message: statecast.sales.v1.Invoice, format: table, values: json}
group_by: store_id
keep: latest
sink: {topic: last-sales}
"""


@pytest.mark.parametrize(("topic", "status"), [("{name: sales, compacted: true}", 0), ("{name: sales}", 2)])
def test_checking_tells_of_a_table_on_a_topic_that_its_domain_does_not_compact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], topic: str, status: int
) -> None:
    (tmp_path / "domain.yaml").write_text(f"topics: [{topic}]\n")
    (tmp_path / "last-sales.yaml").write_text(EVENTS)

    assert main(["check", str(tmp_path)]) == status

    is_refused = "source.topic: sales is read as a table and is not compacted" in capsys.readouterr().err
    assert is_refused == (status == 2)


def test_a_wrong_setting_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_METRICS_PORT", "x")

    assert main(["run", str(PIPELINES[0])]) == 2

    error = capsys.readouterr().err
    assert error.startswith("stream-processor: STREAM_PROCESSOR_METRICS_PORT='x': ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "check"])
def test_an_unknown_variable_is_refused_with_the_nearest_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_METRIC_PORT", "9102")
    monkeypatch.setenv("STREAM_PROCESSOR_DRAIN_S", "soon")

    assert main([command, str(PIPELINES[0])]) == 2

    error = capsys.readouterr().err
    assert (
        "STREAM_PROCESSOR_METRIC_PORT: there is no such variable; did you mean STREAM_PROCESSOR_METRICS_PORT?" in error
    )
    assert "STREAM_PROCESSOR_DRAIN_S='soon': " in error


@pytest.mark.stack  # it needs the jars of Maven
def test_a_port_in_use_is_one_line_and_status_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("STREAM_PROCESSOR_METRICS_PORT", str(port))

        assert main(["run", str(PIPELINES[0])]) == 2

    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_accepting_needs_a_broker(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("STREAM_PROCESSOR_KAFKA_BOOTSTRAP", "127.0.0.1:1")

    assert main(["accept-dead-letters", str(PIPELINES[0])]) == 2

    assert "no answer from Kafka at 127.0.0.1:1" in capsys.readouterr().err


def test_the_same_file_twice_is_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(PIPELINES[0]), str(PIPELINES[0])]) == 0

    assert capsys.readouterr().err.count(PIPELINES[0].name) == 1


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0

    assert capsys.readouterr().out == (DOMAINS / "pipeline.schema.json").read_text()
