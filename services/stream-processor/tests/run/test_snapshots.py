"""Snapshots that come to a pipeline with older rows."""

from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from stream_processor.run.checkpoints import Checkpoints, LocalFiles
from stream_processor.run.plan import QueryPlan, plan
from stream_processor.run.snapshots import Snapshots
from testkit.stream_processor.micro_batches import PipelineOf


@pytest.fixture
def planned(shipped: PipelineOf) -> QueryPlan:
    [planned] = plan([shipped("orders-by-key")], {"orders": 4, "orders-by-key": 4, "orders.dead-letter": 1})
    return planned


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(str(tmp_path), LocalFiles())


def read(rows: int, first: int, last: int, change: int | None = None) -> dict[str, object]:
    """Returns a progress with so many rows that snapshots have read at these places."""
    observed = {"snapshot_rows": rows, "snapshot_first": first, "snapshot_last": last, "change_first": change}
    return {"observedMetrics": {"read0": observed}}


NOTHING: dict[str, object] = {"observedMetrics": {"read0": {"snapshot_rows": 0}}}


def test_the_first_snapshot_is_no_news_over_batches_and_restarts(planned: QueryPlan, checkpoints: Checkpoints) -> None:
    snapshots = Snapshots(checkpoints)

    with capture_logs() as events:
        assert snapshots.rows_read_again(planned, NOTHING, False) == 0
        assert snapshots.rows_read_again(planned, read(3, 80, 80), True) == 0
        assert Snapshots(checkpoints).rows_read_again(planned, read(4, 80, 80, change=88), True) == 0
    assert events == []


def test_another_snapshot_is_told_once_and_its_rows_are_counted(planned: QueryPlan, checkpoints: Checkpoints) -> None:
    Snapshots(checkpoints).rows_read_again(planned, read(3, 80, 80), True)
    snapshots = Snapshots(checkpoints)

    with capture_logs() as events:
        assert [snapshots.rows_read_again(planned, read(rows, 160, 160), True) for rows in (2, 5)] == [2, 5]
    assert [(each["pipeline"], each["rows"]) for each in events] == [("orders-by-key", 2)]


def test_a_snapshot_after_changes_is_told(planned: QueryPlan, checkpoints: Checkpoints) -> None:
    Snapshots(checkpoints).rows_read_again(planned, NOTHING, True)

    assert Snapshots(checkpoints).rows_read_again(planned, read(1, 160, 160), True) == 1


@pytest.mark.parametrize("together", [read(2, 80, 160), read(1, 80, 80, change=8)])
def test_a_snapshot_is_told_when_what_was_before_it_comes_with_it(
    planned: QueryPlan, together: dict[str, object]
) -> None:
    assert Snapshots().rows_read_again(planned, together, True) > 0


def test_a_checkpoint_that_was_made_anew_has_no_rows_from_before(planned: QueryPlan, checkpoints: Checkpoints) -> None:

    Snapshots(checkpoints).rows_read_again(planned, read(3, 160, 160), True)

    assert Snapshots(checkpoints).rows_read_again(replace(planned, epoch=planned.epoch + 1), read(3, 80, 80), True) == 0
