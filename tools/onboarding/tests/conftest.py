"""A real PostgreSQL with tables that are none of ours."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from testkit.postgres import PostgresProcess, running_postgres

TABLES = """
CREATE TYPE shipment_state AS ENUM ('packed', 'on_the_way', 'delivered');
CREATE TYPE grade AS ENUM ('first class', 'second class');
CREATE DOMAIN cents AS bigint CHECK (VALUE >= 0);
CREATE TABLE public.shipments (
  id uuid PRIMARY KEY,
  customer_id bigint NOT NULL,
  state shipment_state NOT NULL,
  grade grade,
  weight numeric(10, 3),
  parcels integer NOT NULL DEFAULT 1,
  price cents NOT NULL,
  tags text[] NOT NULL DEFAULT '{}',
  details jsonb,
  due date,
  twice bigint GENERATED ALWAYS AS (parcels * 2) STORED,
  "no name" text,
  depot_id bigint,
  updated_at timestamptz NOT NULL
);
COMMENT ON COLUMN shipments.customer_id IS 'Who has ordered it.';
CREATE SCHEMA stock;
CREATE TABLE stock.levels (depot int, article text, amount int NOT NULL, PRIMARY KEY (depot, article));
ALTER TABLE stock.levels REPLICA IDENTITY FULL;
CREATE TABLE public.notes (text text);
"""


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProcess]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        server.execute(TABLES)
        yield server


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "team"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that start a database, so that the fast loop leaves them out."""
    for item in items:
        if "database" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.stack)
