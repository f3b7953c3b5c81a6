"""The explanation of a pipeline for people."""

from stream_processor.pipeline.pipeline import explain
from testkit.stream_processor.changes import INVOICE_CHANGES, INVOICE_ROWS
from testkit.stream_processor.micro_batches import PipelineOf


def test_members_are_told_from_source_to_sink(shipped: PipelineOf) -> None:
    assert explain(shipped("matches-about-to-start")) == [
        "matches-about-to-start: members, from matches-about-to-start.yaml",
        "  read        matches: statecast.odds.v1.MatchChange as protobuf",
        "  where       status = 'MATCH_STATUS_ABOUT_TO_START'",
        "  remember    per match_id: the keys that the row stands under; for 7d after it is gone",
        "  write       matches-about-to-start: statecast.odds.v1.Match under status + starts_at + match_id",
        "  set aside   matches.dead-letter: what cannot be used; 1000 at most",
        "  run         realtime, a checkpoint every 1m",
    ]


def test_an_aggregate_tells_its_numbers_and_its_window(shipped: PipelineOf) -> None:
    lines = explain(
        shipped("hourly-sales-by-store", source=INVOICE_ROWS, trigger={"mode": "micro-batch", "interval": "500ms"})
    )

    assert lines[2:7] == [
        "  remember    per invoice_number: what the row adds to its groups; for 7d after it is gone",
        "  window      1h by created_at; final 7d after its end",
        "  keep        per group: invoices = count(*)",
        "  keep        per group: amount_cents = sum(total_amount_cents)",
        "  keep        per group: average_cents = avg(total_amount_cents)",
    ]
    assert "under store_id + window_start + window_end" in lines[7]
    assert lines[-1] == "  run         micro-batch, a batch every 500ms, of 100000 records at most"


def test_an_aggregate_tells_when_its_windows_are_deleted(shipped: PipelineOf) -> None:
    window = {"time": "created_at", "size": "1h", "hop": "10m", "lateness": "7d", "keep": "90d"}
    lines = explain(shipped("hourly-sales-by-store", window=window))

    assert "  window      1h every 10m by created_at; final 7d after its end, deleted 90d after it" in lines


def test_a_route_tells_that_it_keeps_nothing(shipped: PipelineOf) -> None:
    text = "\n".join(explain(shipped("masked-lines", source=INVOICE_CHANGES)))

    assert "  explode     lines: a record per element" in text
    assert "  select      item_code = element.item_code" in text
    assert "passed on, at least once: create, update, snapshot" in text
    assert "remember" not in text


def test_both_tables_of_a_join_are_told(shipped: PipelineOf) -> None:
    lines = explain(shipped("stores-with-sales"))

    assert "  read        sales-by-store: statecast.sales.v1.StoreSales as table of state-record values" in lines
    assert "  join        sales-by-store as sales, by the records' keys: left" in lines
    assert "  remember    per key of both tables' records: the rows of both; for 7d after both are gone" in lines
    assert sum("set aside" in each for each in lines) == 2


def test_a_joined_table_is_told(shipped: PipelineOf) -> None:
    table = "stores-by-key as store, by store_id: statecast.sales.v1.Store, followed as a table"

    assert f"  join        {table}" in explain(shipped("invoices-with-store"))
