"""The place of a change in the log, as one number."""

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812  the name that every Spark program uses

from stream_processor.steps.debezium import SOURCE_FIELDS
from stream_processor.steps.json_texts import read_json
from stream_processor.steps.log_positions import GAP, MAX_FILE, log_position, position_problem

Change = tuple[str, dict[str, Any] | None]


def binlog(file: str, pos: object, row: object = 0, operation: str = "u", connector: str = "mysql") -> Change:
    return operation, {"connector": connector, "file": file, "pos": pos, "row": row, "server_id": 1}


@pytest.fixture
def placed(spark: SparkSession) -> Callable[..., list[Row]]:
    """Gives `number` and `problem` of changes, each an operation with its source."""

    def place(*changes: Change) -> list[Row]:
        texts = [(at, operation, source and json.dumps(source)) for at, (operation, source) in enumerate(changes)]
        read = spark.createDataFrame(texts, "at int, op string, text string").withColumn(
            "source", read_json(F.col("text"), SOURCE_FIELDS)
        )
        number, problem = (of(F.col("source"), F.col("op")) for of in (log_position, position_problem))
        return read.select("at", number.alias("number"), problem.alias("problem")).orderBy("at").collect()

    return place


def test_changes_of_a_binlog_rise_by_file_then_event_then_row(placed: Callable[..., list[Row]]) -> None:
    changes = placed(
        binlog("mysql-bin.000001", 4),
        binlog("mysql-bin.000001", 400),
        binlog("mysql-bin.000001", 400, 1),
        binlog("mysql-bin.000001", 400, 90),
        binlog("mysql-bin.000001", 500),
        binlog("mysql-bin.000001", 4_294_967_290, 5),
        binlog("mysql-bin.000002", 4),
        binlog("mysql-bin.000010", 4, connector="mariadb"),
        binlog("a.b.999999", 4),
        binlog("mysql-bin.1000000", 4),
        binlog(f"mysql-bin.{MAX_FILE}", 4_294_967_295),
    )

    assert {change.problem for change in changes} == {None}
    assert all(after.number - before.number >= GAP for before, after in pairwise(changes))
    assert {change.number % GAP for change in changes} == {0}
    assert changes[-1].number == 2**63 - GAP


def test_a_row_that_was_read_stands_where_the_log_was_whatever_row_came_before_it(
    placed: Callable[..., list[Row]],
) -> None:
    event, read, truncated, later = placed(
        binlog("binlog.000003", 400, 90),
        binlog("binlog.000003", 600, 90, operation="r"),
        binlog("binlog.000003", 600, 90, operation="t"),
        binlog("binlog.000003", 650),
    )

    assert event.number < read.number == truncated.number < later.number


NO_PLACES: dict[str, list[Change]] = {
    "source.file": [
        binlog("mysql-bin", 4),
        binlog("mysql-bin.000000", 4),
        binlog(f"mysql-bin.{MAX_FILE + 1}", 4),
        binlog("mysql-bin.0000000001", 4),
        binlog("binlog-000001.ibb", 4),
        binlog("", 4),
        ("c", {"connector": "mariadb", "pos": 4, "row": 0}),
    ],
    "source.pos": [
        binlog("mysql-bin.000001", 0),
        binlog("mysql-bin.000001", 3, 1),
        binlog("mysql-bin.000001", -1),
        binlog("mysql-bin.000001", 4.5),
        binlog("mysql-bin.000001", None),
        binlog("mysql-bin.000001", 4, None),
        binlog("mysql-bin.000001", 4_294_967_296),
        binlog("mysql-bin.000001", 4_294_967_295, 1),
        binlog("mysql-bin.000001", 10**19),
    ],
    "source.lsn": [
        ("c", {"connector": "postgresql", "lsn": None, "sequence": '["8","16"]'}),
        ("r", {"connector": "postgresql", "lsn": None, "sequence": "[]"}),
        ("c", {"connector": "sqlserver", "change_lsn": "0000:0001"}),
    ],
}
"""Changes without a place, by the field that their problem names."""


def test_what_names_no_place_is_a_problem_that_says_where(placed: Callable[..., list[Row]]) -> None:
    changes = [(names, change) for names, several in NO_PLACES.items() for change in several]

    for line, (names, _) in zip(placed(*[change for _, change in changes]), changes, strict=True):
        assert line.problem.startswith(names)


def test_a_log_sequence_number_is_its_own_place(placed: Callable[..., list[Row]]) -> None:
    changed, read, none = placed(
        ("u", {"connector": "postgresql", "lsn": 32, "sequence": '["24","32"]'}),
        ("r", {"connector": "postgresql", "lsn": None, "sequence": '["24","32"]'}),
        ("u", None),
    )

    assert [(line.number, line.problem) for line in (changed, read, none)] == [(32, None), (24, None), (None, None)]
