"""`statecast doctor` on a table that was imported, with a real Debezium."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from typing_extensions import override

from statecast_client.__main__ import main as statecast
from statecast_onboarding.connector_file import JSON_CONVERTER
from testkit.debezium import CONNECTOR, running_connect
from testkit.postgres import PostgresProcess

pytestmark = pytest.mark.kafka


@pytest.mark.timeout(300)
def test_what_was_imported_is_sound_until_something_is_broken(
    database: PostgresProcess, kafka: str, out: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = [database.server.dsn, "--topic-prefix", "doctor", "--table", "stock.levels", "--out", str(out)]
    assert statecast(["import", *command]) == 0
    system = [str(out / "pipelines"), "--kafka", kafka, "--out", str(out)]
    assert statecast(["apply", *system, "--replication-factor", "1"]) == 0
    config = json.loads((out / "connector.json").read_text()) | {"database.password": database.server.password}
    capsys.readouterr()

    with running_connect(tmp_path / "connect", kafka, {**config, "name": CONNECTOR}) as connect:
        url = f"http://127.0.0.1:{connect.worker.port}"
        arguments = ["doctor", "--files", str(out), "--kafka", kafka, "--connect", url, "--connector", CONNECTOR]
        arguments += ["--database", database.server.dsn]
        sound, said = statecast(arguments), capsys.readouterr().out
        database.execute("ALTER TABLE stock.levels REPLICA IDENTITY NOTHING")
        broken, complaint = statecast(arguments), capsys.readouterr().out
        database.execute("ALTER TABLE stock.levels REPLICA IDENTITY FULL")
        other = statecast([*arguments[:-4], "--connector", "other", *arguments[-2:]])
        unknown = capsys.readouterr().out

    assert sound == 0, said
    assert f"ok    connector {CONNECTOR}: runs\n" in said
    assert "ok    table stock.levels: has REPLICA IDENTITY FULL\n" in said
    assert broken == 1
    assert "FAIL  table stock.levels: has REPLICA IDENTITY NOTHING" in complaint
    assert other == 1
    assert f"FAIL  connector other: Connect at {url} does not have it; one of: {CONNECTOR}" in unknown


def test_a_silent_connect_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert statecast(["doctor", "--connect", "http://127.0.0.1:1", "--connector", "shop"]) == 1
    assert capsys.readouterr().out.startswith("FAIL  connect: Kafka Connect at http://127.0.0.1:1 does not answer")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ([], "name something to look at"),
        (["--connect", "http://127.0.0.1:1"], "--connector is missing"),
        (["--kafka", "127.0.0.1:1", "--files", "nowhere"], "nowhere is not a directory"),
        (["--files", "."], ". has no connector.json: name --kafka"),
    ],
)
def test_wrong_arguments_end_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str) -> None:
    assert statecast(["doctor", *arguments]) == 2
    assert reason in capsys.readouterr().err


CONNECTOR_FILE = {"topic.prefix": "shop", "table.include.list": "public.orders", "snapshot.mode": "never"}


def write_domain(directory: Path, topic: str) -> None:
    """A domain of one pipeline, which reads the topic."""
    directory.mkdir()
    (directory / "domain.yaml").write_text(f"topics: [{{name: {topic}}}]\n")
    (directory / "orders.yaml").write_text(f"""\
name: orders
source: {{topic: {topic}, message: shop.v1.OrderChange}}
group_by: id
keep: latest
sink: {{topic: orders}}
""")


def test_the_connector_of_the_files_is_looked_at_without_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "connector.json").write_text(json.dumps(CONNECTOR_FILE))
    write_domain(tmp_path / "pipelines", "old.public.orders")

    assert statecast(["doctor", "--files", str(tmp_path), "--connector", "shop"]) == 1
    said = capsys.readouterr().out
    assert "WARN  snapshot.mode" in said
    assert "FAIL  source old.public.orders: the connector writes shop.public.orders" in said


def test_a_connector_that_is_a_directory_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "connector.json").mkdir()

    assert statecast(["doctor", "--files", str(tmp_path)]) == 2
    assert f"{tmp_path}/connector.json cannot be read: Is a directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("orders.yaml", "source: {}", "name: is missing"),
        ("domain.yaml", "topics: [{name: a, partitions: many}]", "topics[0].partitions: "),
        ("domain.yaml", "topics: []", "no pipeline writes shop.public.orders, and no domain.yaml declares it"),
    ],
)
def test_a_wrong_file_of_the_domain_is_refused_by_its_key(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], file: str, text: str, reason: str
) -> None:
    (tmp_path / "connector.json").write_text("{}")
    write_domain(tmp_path / "pipelines", "shop.public.orders")
    (tmp_path / "pipelines" / file).write_text(text)

    assert statecast(["doctor", "--files", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path}/pipelines/" in error
    assert reason in error


def test_a_connector_with_values_that_are_no_texts_is_looked_at_as_connect_reads_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = {"value.converter": JSON_CONVERTER, "value.converter.schemas.enable": True, "table.include.list": None}
    (tmp_path / "connector.json").write_text(json.dumps({**CONNECTOR_FILE, **settings}))
    write_domain(tmp_path / "pipelines", "shop.public.orders")

    assert statecast(["doctor", "--files", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "value.converter.schemas.enable" not in said
    assert "table.include.list" not in said


def test_half_of_a_character_is_printed_as_a_question_mark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "connector.json").write_text(json.dumps({"connector.class": "half \ud800"}))

    assert statecast(["doctor", "--files", str(tmp_path)]) == 1
    assert "connector.class: is half ?: changes are read" in capsys.readouterr().out


CONNECTED: dict[str, object] = {"config": {}}


@pytest.mark.parametrize(
    "answers",
    [
        {"/connectors/my%2Fshop": {"config": ["a"]}, "/connectors/my%2Fshop/status": {}},
        {"/connectors/my%2Fshop": {"config": {"a": ["b"]}}, "/connectors/my%2Fshop/status": {}},
        {"/connectors/my%2Fshop": CONNECTED, "/connectors/my%2Fshop/status": ["a"]},
        {"/connectors/my%2Fshop": CONNECTED, "/connectors/my%2Fshop/status": {"tasks": {"a": "b"}}},
        {"/connectors/my%2Fshop": CONNECTED, "/connectors/my%2Fshop/status": {"connector": "RUNNING"}},
        {"/connectors/my%2Fshop": CONNECTED, "/connectors/my%2Fshop/status": {}, "/connectors?expand=info": ["a"]},
    ],
)
def test_a_connect_that_answers_something_else_is_one_line(
    capsys: pytest.CaptureFixture[str], answers: dict[str, object]
) -> None:
    with answering(answers) as url:
        assert statecast(["doctor", "--connect", url, "--connector", "my/shop"]) == 1

    said = capsys.readouterr().out
    assert said.startswith(f"FAIL  connect: Kafka Connect at {url} does not answer as it should")
    assert said.count("\n") == 1


@contextmanager
def answering(answers: dict[str, object]) -> Iterator[str]:
    """Runs a server with a JSON answer for each path; yields its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Stays silent."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
