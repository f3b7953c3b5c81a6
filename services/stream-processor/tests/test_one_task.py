"""A real-time pipeline without `parallelism` runs in one task slot, unless its state has parts already (ADR 0068)."""

import pytest

from testkit.stream_processor.holders import Holders
from testkit.stream_processor.process import ProcessorOf
from testkit.stream_processor.truncated_positions import created, event, position, truncated

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

TWO_READERS_AND_TWICE_TWO_PARTS = 6.0


def test_an_aggregate_runs_in_one_slot_and_is_exact_through_a_kill_and_a_truncation(
    kafka: str, processor_of: ProcessorOf
) -> None:
    holders = Holders(kafka, processor_of)
    processor = holders.started()
    holders.send(0, created(8, "p"), created(24, "r", "a", 3))
    holders.send(1, created(16, "q", "b"))
    holders.wait_for(processor, [position("p"), position("q", "b"), position("r", "a", 3)])
    holders.wait_tasks(processor, 1.0)

    processor.kill()
    holders.send(0, event("u", 32, after=position("r", "b", 2)))
    holders.send(1, created(40, "s"))
    processor = holders.started()
    holders.wait_for(processor, [position("p"), position("q", "b"), position("r", "b", 2), position("s")])

    holders.send(0, truncated(48))
    holders.send(1, created(56, "s", "b", 7))
    holders.wait_for(processor, [position("s", "b", 7)])
    assert processor.stop() == 0


@pytest.mark.long
def test_a_state_with_two_parts_goes_on_with_them(kafka: str, processor_of: ProcessorOf) -> None:
    holders = Holders(kafka, processor_of)
    processor = holders.started(parallelism=2)
    holders.send(0, created(8, "p"))
    holders.send(1, created(16, "q", "b"))
    holders.wait_for(processor, [position("p"), position("q", "b")])
    assert processor.stop() == 0

    processor = holders.started()
    holders.send(1, event("u", 24, after=position("q", "a", 4)))
    holders.wait_for(processor, [position("p"), position("q", "a", 4)])
    holders.wait_tasks(processor, TWO_READERS_AND_TWICE_TWO_PARTS)
    assert processor.stop() == 0
