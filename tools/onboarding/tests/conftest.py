"""A real PostgreSQL with tables that are none of ours."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from query_service.server.shard_listing import listed
from query_service.storage.stores_file import read_stores
from statecast.descriptors import MessageTypes
from statecast_onboarding.domains.command import apply
from stream_processor.__main__ import main as stream_processor
from testkit.postgres import PostgresProcess, running_postgres
from ws_edge.channels import EDGE_STORES
from ws_edge.model.listed_stores import store_of

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
CREATE TABLE public.prices (
  id int PRIMARY KEY,
  shop text NOT NULL,
  net numeric(12, 2) NOT NULL,
  rate numeric,
  whole numeric(18),
  large numeric(20),
  tiny numeric(3, 5),
  rounded numeric(5, -2),
  huge numeric(50, 2),
  several numeric(8, 2)[]
);
CREATE TABLE public."Order Items" ("no" int PRIMARY KEY, "case" int NOT NULL, "ID" int, customer_id bigint, note text);
CREATE TABLE public.größe (id int PRIMARY KEY, "ID" int, _id int);
CREATE TABLE public."order" (id int PRIMARY KEY);
CREATE TABLE public.order_change (id int PRIMARY KEY);
CREATE TABLE public."2024_orders" (id int PRIMARY KEY, key int);
CREATE TABLE public."price$,net" (id int PRIMARY KEY);
CREATE TABLE public."two\nlines" (id int PRIMARY KEY);
CREATE TABLE public.order_lines_of_all_regions_and_years_that_nobody_has_archived__ (
  id int PRIMARY KEY,
  order_lines_of_all_regions_and_years_that_nobody_has_archived__ int
);
"""


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresProcess]:
    with running_postgres(tmp_path_factory.mktemp("postgres")) as server:
        server.execute(TABLES)
        yield server


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "team"


@pytest.fixture
def check(out: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Makes the services' files of the domain, and checks all that services check before they start.

    Returns the status of `stream-processor check`.
    """
    return lambda: status_of(out, monkeypatch)


def status_of(out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("STATECAST_DESCRIPTORS", str(out / "messages"))
    status = stream_processor(["check", str(out / "pipelines")])
    assert apply([str(out / "pipelines"), "--out", str(out)]) == 0
    types = MessageTypes.read(out / "messages")
    stores = {store.name: store for store in read_stores(out / "stores.yaml", types)}
    topics = {topic.name: topic for topic in read_topics(out / "topics.yaml")}

    assert {*EDGE_STORES} <= set(stores)
    for name in stores.keys() - EDGE_STORES.keys():
        assert store_of(listed(stores[name]), types).name == name
    assert {store.topic for store in stores.values()} <= set(topics)
    for file in (out / "pipelines").glob("*-by-*.yaml"):
        pipeline = yaml.safe_load(file.read_text())
        source = pipeline["source"]["topic"]
        assert {source, f"{source}.dead-letter", pipeline["sink"]["topic"]} <= set(topics)
        assert "compact" in topics[pipeline["sink"]["topic"]].config["cleanup.policy"]
    return status


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that start a database, so that the fast loop leaves them out."""
    for item in items:
        if "database" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.stack)
