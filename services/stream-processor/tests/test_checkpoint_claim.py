"""A checkpoint and the meaning it was made with."""

from collections.abc import Callable
from pathlib import Path

import pytest

from stream_processor.checkpoint_claim import claim
from stream_processor.errors import PipelineChangedError
from stream_processor.pipeline import Pipeline
from stream_processor.plan import QueryPlan, plan

IDS = {"orders": "A", "orders-by-key": "B"}


def planned(pipeline: Pipeline, sink_partitions: int = 4) -> QueryPlan:
    return plan([pipeline], {"orders": 4, "orders-by-key": sink_partitions, "orders.dead-letter": 1})[0]


@pytest.fixture
def claimed(tmp_path: Path, shipped: Callable[..., Pipeline]) -> Path:
    """A directory in which orders-by-key has a checkpoint."""
    claim(tmp_path, planned(shipped("orders-by-key")), IDS)
    (tmp_path / "orders-by-key").mkdir()
    return tmp_path


@pytest.mark.parametrize("replaced", [{}, {"trigger": {"checkpoint": "9s"}}, {"dead_letters": {"limit": 1}}])
def test_the_same_meaning_goes_on(claimed: Path, shipped: Callable[..., Pipeline], replaced: dict[str, object]) -> None:
    claim(claimed, planned(shipped("orders-by-key", **replaced)), IDS)


@pytest.mark.parametrize(
    ("replaced", "key"),
    [
        ({"group_by": "customer_id"}, "group_by"),
        ({"where": "total_cents > 0"}, "where"),
        ({"keep": {"members": {"key": "order_id", "sort": "placed_at"}}}, "keep"),
    ],
)
def test_another_meaning_is_refused(
    claimed: Path, shipped: Callable[..., Pipeline], replaced: dict[str, object], key: str
) -> None:
    with pytest.raises(PipelineChangedError, match=f"orders-by-key.yaml: {key}: changed since the checkpoint"):
        claim(claimed, planned(shipped("orders-by-key", **replaced)), IDS)


def test_a_sink_with_other_partitions_is_refused(claimed: Path, shipped: Callable[..., Pipeline]) -> None:
    with pytest.raises(PipelineChangedError, match=r"sink\.partitions: changed"):
        claim(claimed, planned(shipped("orders-by-key"), sink_partitions=8), IDS)


def test_without_the_checkpoint_any_meaning_begins_anew(claimed: Path, shipped: Callable[..., Pipeline]) -> None:
    (claimed / "orders-by-key").rmdir()

    claim(claimed, planned(shipped("orders-by-key", group_by="customer_id")), IDS)


@pytest.mark.parametrize(("topic", "key"), [("orders", r"source\.topic\.id"), ("orders-by-key", r"sink\.topic\.id")])
def test_a_topic_that_was_made_anew_is_refused(
    claimed: Path, shipped: Callable[..., Pipeline], topic: str, key: str
) -> None:
    with pytest.raises(PipelineChangedError, match=f"{key}: changed"):
        claim(claimed, planned(shipped("orders-by-key")), {**IDS, topic: "C"})
