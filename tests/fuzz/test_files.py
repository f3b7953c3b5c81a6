"""A service reads any file of the operators, or names the problem on one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from inputs.documents import damaged_text
from inputs.files import files
from inputs.profiles import fuzz

import statecast
from query_service.errors import StoresFileError
from query_service.settings import SHIPPED_STORES
from query_service.storage import stores_file
from statecast_domains.directories import pipeline_files
from statecast_domains.errors import PipelineFileError
from statecast_service.errors import ServiceError
from stream_processor import shapes
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import explain

PIPELINES = Path(__file__).parents[2] / "domains"
CONTRACT = Contract(statecast.descriptor_set())
DURATIONS = ("500ms", "0s", "1d", "9" * 30 + "d", "9" * 5_000 + "ms", "\u0663s")
SQL = (
    "*",
    "count(*)",
    "sum(total_cents)",
    "customer_id = 'a' and status > 1",
    "items[0].item_id",
    "element.item_id",
    "transform(items, x -> x.item_id)",
    "case when total_cents > 0 then 'a' end",
    "select 1",
    "rand()",
    "a; drop table b",
    "'unclosed",
    "/*",
    "cast(1 as decimal(99, 99))",
    "x'zz'",
    "`",
    "1e999",
    "(" * 30 + "1" + ")" * 30,
    "(" * 2_000 + "1" + ")" * 2_000,
    "not " * 2_000 + "true",
    "1" + " + 1" * 2_000,
    "array(" * 300 + ")" * 300,
)


def sound(*paths: Path) -> list[Any]:
    return [yaml.safe_load(path.read_text()) for path in paths]


ROUTE: Any = yaml.safe_load(
    """
    name: paid
    source: {topic: orders, message: statecast.orders.v1.OrderChange}
    group_by: order_id
    keep: route
    sink: {topic: paid, message: statecast.orders.v1.Order}
    """
)
PLAIN_STORES: Any = yaml.safe_load(
    """
    stores:
      - name: bookings
        topic: bookings
        format: plain
        message: json
        partitioner: crc32
        engine: memory
        replicas: 3
        retain: 24h
        history: {versions: 20}
    """
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file that is read."""
    return tmp_path_factory.mktemp("files") / "file.yaml"


def refusal(path: Path, content: bytes, read: Callable[[Path], object], error: type[ServiceError]) -> str:
    """Returns the text of the only error with which a file of this content may be refused; nothing when it is read."""
    path.write_bytes(content)
    try:
        read(path)
    except error as refused:
        return str(refused)
    return ""


def is_one_line(text: str) -> bool:
    return len(text.splitlines()) <= 1


@fuzz(2)
@given(files(*sound(SHIPPED_STORES), PLAIN_STORES, more_values=(*DURATIONS, "staff", "everyone", {"field": "items"})))
def test_stores_files(path: Path, content: bytes) -> None:
    assert is_one_line(refusal(path, content, stores_file.read_stores, StoresFileError))


def check_pipeline(path: Path, content: bytes) -> None:
    def read(file: Path) -> object:
        return explain(shapes.read(file, CONTRACT))

    assert is_one_line(refusal(path, content, read, PipelineFileError))


@fuzz(3)
@given(files(*sound(*pipeline_files([PIPELINES])), more_values=DURATIONS + SQL))
def test_pipeline_files(path: Path, content: bytes) -> None:
    check_pipeline(path, content)


@fuzz(3)
@given(damaged_text(st.sampled_from(SQL)))
def test_sql_of_pipeline_files(path: Path, sql: str) -> None:
    check_pipeline(path, json.dumps({**ROUTE, "where": sql}, ensure_ascii=False).encode())
    check_pipeline(path, json.dumps({**ROUTE, "select": {"order_id": sql}}, ensure_ascii=False).encode())
