"""`statecast import` and `statecast doctor` read a connector's file in each of its forms."""

import json
from pathlib import Path

import pytest

from statecast_client.__main__ import main as statecast
from statecast_onboarding.connector_file import JSON_CONVERTER
from testkit.postgres import PostgresProcess


def test_a_table_is_included_as_the_regular_expression_of_its_name(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table"]
    assert statecast([*command, "price$,net"]) == 0
    assert statecast([*command, "shipments"]) == 0
    included = json.loads((out / "connector.json").read_text())["table.include.list"]
    capsys.readouterr()

    assert included == r"public.price\$\,net,public.shipments"
    statecast(["doctor", "--files", str(out), "--database", database.server.dsn, "--table", "price$,net"])
    said = capsys.readouterr().out
    assert "table.include.list" not in said
    assert "table public.price$,net: has REPLICA IDENTITY DEFAULT" in said


def test_a_connector_in_the_form_of_the_rest_api_is_extended_within_its_config(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["import", database.server.dsn, "--out", str(out), "--table"]
    assert statecast([*command, "shipments", "--topic-prefix", "shop"]) == 0
    assert f"-d @{out}/connector.json CONNECT" in capsys.readouterr().out
    config = json.loads((out / "connector.json").read_text())
    (out / "connector.json").write_text(json.dumps({"name": "orders", "config": config}))

    assert statecast([*command, "stock.levels", "--topic-prefix", "other"]) == 2
    assert "connector.json has topic.prefix shop, not other" in capsys.readouterr().err
    assert statecast([*command, "stock.levels"]) == 0
    assert json.loads((out / "connector.json").read_text()) == {
        "name": "orders",
        "config": {**config, "table.include.list": "public.shipments,stock.levels"},
    }
    assert f"jq .config {out}/connector.json | curl -X PUT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"name": "orders", "config": null}', "config must be a JSON object, the connector's settings"),
        ('{"name": "orders", "config": {"topic.prefix": {}}}', "config.topic.prefix must be a text, a number, true"),
        ('{"table.include.list": ["public.a"]}', "table.include.list must be a text, a number, true or false"),
        ("[]", "it must be a JSON object, the connector's settings"),
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_a_connector_that_is_no_configuration_is_refused(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str], text: str, reason: str
) -> None:
    out.mkdir()
    (out / "connector.json").write_text(text)

    for command in (
        ["import", database.server.dsn, "--out", str(out), "--table", "shipments"],
        ["doctor", "--files", str(out)],
    ):
        assert statecast(command) == 2
        error = capsys.readouterr().err
        assert f"{out}/connector.json" in error
        assert reason in error
    assert [path.name for path in out.iterdir()] == ["connector.json"]


@pytest.mark.parametrize("tables", [{}, {"table.include.list": None}, {"table.include.list": " "}])
def test_a_connector_that_reads_all_tables_goes_on_doing_so(
    database: PostgresProcess, out: Path, tables: dict[str, str | None]
) -> None:
    out.mkdir()
    edited = {"topic.prefix": "shop", **tables}
    (out / "connector.json").write_text(json.dumps(edited))

    assert statecast(["import", database.server.dsn, "--out", str(out), "--table", "stock.levels"]) == 0
    assert json.loads((out / "connector.json").read_text()) == edited


def test_settings_of_a_connector_that_are_no_texts_stay_as_they_are(database: PostgresProcess, out: Path) -> None:
    out.mkdir()
    edited = {"topic.prefix": 7, "tombstones.on.delete": False, "table.include.list": "public.shipments"}
    (out / "connector.json").write_text(json.dumps(edited))

    assert statecast(["import", database.server.dsn, "--out", str(out), "--table", "stock.levels"]) == 0
    connector = json.loads((out / "connector.json").read_text())
    assert connector == {**edited, "table.include.list": "public.shipments,stock.levels"}
    assert "topic: 7.stock.levels" in (out / "pipelines/levels-by-key.yaml").read_text().replace('"', "")


def test_settings_that_lose_changes_with_another_table_are_set_right_and_said(
    database: PostgresProcess, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out.mkdir()
    former = {"topic.prefix": "shop", "table.include.list": "public.shipments", "value.converter": JSON_CONVERTER}
    former |= {"publication.autocreate.mode": "filtered", "skipped.operations": "t"}
    (out / "connector.json").write_text(json.dumps(former))

    assert statecast(["import", database.server.dsn, "--out", str(out), "--table", "stock.levels"]) == 0
    said = capsys.readouterr().out
    right = {"skipped.operations": "none", "value.converter.replace.null.with.default": "false"}
    tables = {"table.include.list": "public.shipments,stock.levels"}
    assert json.loads((out / "connector.json").read_text()) == {**former, **tables, **right}
    assert f"set skipped.operations to none in {out}/connector.json" in said
    assert "UPDATE stock.levels SET depot = depot;" in said
