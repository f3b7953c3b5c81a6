"""The first checkpoint of a run comes sooner than the others, by the pipeline's name."""

from pathlib import Path

import pytest

from testkit.stream_processor.process import ProcessorOf, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(300)]

EARLY = "latest-2563"
"""A name by which the first of hourly checkpoints comes after 5.2 seconds."""


def test_a_run_has_its_first_checkpoint_sooner(prefix: str, start_processor: ProcessorOf, tmp_path: Path) -> None:
    hourly = {"name": EARLY, "trigger": {"mode": "realtime", "checkpoint": "1h"}}
    processor = start_processor(prefix, hourly, named=["orders/orders-by-key"])
    processor.start()

    wait_until((tmp_path / "checkpoints" / EARLY / "commits" / "0").exists, lambda: processor.log)
