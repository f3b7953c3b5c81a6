"""Problems that are found in a real MariaDB."""

from collections.abc import Iterator, Mapping

import pytest

from statecast_onboarding.doctor.binlog_checks import check_binlog_database
from statecast_onboarding.doctor.command import main
from testkit.mariadb import USER, MariaDbProcess, running_mariadb

TABLES = (
    "CREATE TABLE orders (id int PRIMARY KEY, total bigint)",
    "CREATE TABLE notes (text text)",
    "CREATE TABLE meters (id bigint unsigned, site varchar(9), counted bigint(20) unsigned, PRIMARY KEY (id, site))",
    "CREATE TABLE order_lines (id int PRIMARY KEY, order_id int, CONSTRAINT of_order FOREIGN KEY (order_id)"
    " REFERENCES orders (id) ON DELETE CASCADE ON UPDATE SET NULL)",
    "CREATE TABLE checked (id int PRIMARY KEY, order_id int REFERENCES orders (id))",
    "CREATE TABLE old (id int PRIMARY KEY) ENGINE=MyISAM",
    "CREATE TABLE days (id int PRIMARY KEY) PARTITION BY HASH (id) PARTITIONS 2",
    "CREATE DATABASE unlogged",
    "CREATE TABLE unlogged.orders (id int PRIMARY KEY)",
    "CREATE VIEW seen AS SELECT * FROM orders",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDbProcess]:
    with running_mariadb(tmp_path_factory.mktemp("mariadb"), binlog_ignore_db="unlogged") as server:
        for statement in TABLES:
            server.execute(statement)
        yield server


@pytest.fixture
def with_global(database: MariaDbProcess, request: pytest.FixtureRequest) -> Iterator[str]:
    """Sets a variable of the server for a test."""
    name, value = request.param
    [(before,)] = database.execute(f"SELECT @@GLOBAL.{name}")
    database.execute(f"SET GLOBAL {name} = %s", [value])
    yield name
    database.execute(f"SET GLOBAL {name} = %s", [before])


def lines(
    database: MariaDbProcess, *tables: str, config: Mapping[str, str] | None = None, url: str | None = None
) -> list[str]:
    return [str(each) for each in check_binlog_database(url or database.server.url, tables, config or {})]


def test_a_binlog_of_whole_rows_is_right(database: MariaDbProcess) -> None:
    findings = lines(database, f"{USER}.orders")

    assert "ok    binlog_row_image: is FULL" in findings
    assert {line[:4] for line in findings} == {"ok  "}


@pytest.mark.parametrize(
    "with_global",
    [("binlog_format", "MIXED"), ("binlog_row_image", "MINIMAL"), ("log_bin_compress", 1)],
    indirect=True,
)
def test_a_binlog_that_leaves_something_out_fails(database: MariaDbProcess, with_global: str) -> None:
    assert any(line.startswith(f"FAIL  {with_global}: is ") for line in lines(database))


def test_what_is_missing_is_named(database: MariaDbProcess) -> None:
    findings = lines(database, f"{USER}.notes", f"{USER}.nothing")

    assert any(line.startswith(f"FAIL  table {USER}.notes: has no primary key") for line in findings)
    assert any(line.startswith(f"FAIL  table {USER}.nothing: does not exist") for line in findings)


def test_large_unsigned_numbers_need_their_mode(database: MariaDbProcess) -> None:
    precise = {"bigint.unsigned.handling.mode": "precise"}

    [line] = [line for line in lines(database, f"{USER}.meters") if line.startswith("WARN")]

    assert line.startswith(f"WARN  table {USER}.meters: id, counted is BIGINT UNSIGNED")
    assert not any(line.startswith("WARN") for line in lines(database, f"{USER}.meters", config=precise))


def test_a_user_without_rights_is_told_what_it_lacks(database: MariaDbProcess) -> None:
    database.execute("CREATE USER stranger@'127.0.0.1' IDENTIFIED BY 'throw-away'")
    url = f"mysql://stranger:throw-away@127.0.0.1:{database.server.port}"

    assert any(line.startswith("FAIL  user: may not read the binlog") for line in lines(database, url=url))


@pytest.mark.parametrize("url", ["mysql://nobody:secret@127.0.0.1:{port}", "mysql://127.0.0.1:1", "mysql://a:port"])
def test_a_database_that_lets_nobody_in_is_one_failure(database: MariaDbProcess, url: str) -> None:
    [line] = lines(database, url=url.format(port=database.server.port))

    assert line.startswith("FAIL  database: ")
    assert "secret" not in line


def test_the_command_takes_the_address_of_a_mysql(database: MariaDbProcess, capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--database", database.server.url, "--table", f"{USER}.notes"])

    findings = capsys.readouterr().out
    assert status == 1
    assert "ok    binlog_format: is ROW" in findings
    assert f"FAIL  table {USER}.notes: has no primary key" in findings


@pytest.mark.parametrize(
    ("table", "start"),
    [
        (
            "order_lines",
            "FAIL  table {}.order_lines: has the foreign key of_order with ON DELETE CASCADE ON UPDATE SET NULL",
        ),
        ("old", "WARN  table {}.old: is of the engine MyISAM"),
        ("days", "WARN  table {}.days: has partitions"),
        ("seen", "FAIL  table {}.seen: is a view"),
    ],
)
def test_what_the_binlog_does_not_tell_is_named(database: MariaDbProcess, table: str, start: str) -> None:
    findings = lines(database, f"{USER}.{table}")

    assert any(line.startswith(start.format(USER)) for line in findings), findings


def test_a_foreign_key_that_refuses_does_no_harm(database: MariaDbProcess) -> None:
    assert {line[:4] for line in lines(database, f"{USER}.checked")} == {"ok  "}


def test_a_database_that_is_not_in_the_binlog_fails(database: MariaDbProcess) -> None:
    [line] = [line for line in lines(database, f"{USER}.orders", "unlogged.orders") if line.startswith("FAIL")]

    assert line.startswith("FAIL  database unlogged: is not in the binlog")


@pytest.mark.parametrize("password", ["s3cret/", "s3cret#", "s3cret?"])
def test_a_wrong_url_is_named_without_its_password(password: str) -> None:
    [finding] = check_binlog_database(f"mysql://me:{password}@127.0.0.1:1/shop", ["shop.orders"], {})

    assert "the URL is wrong" in finding.text
    assert "s3cret" not in finding.text
