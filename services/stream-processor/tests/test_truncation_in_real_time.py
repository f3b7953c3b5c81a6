"""TRUNCATE in real-time mode, with a kill around it, and partitions of the topic that are read in any order."""

import pytest

from testkit.stream_processor.holders import Holders
from testkit.stream_processor.process import ProcessorOf
from testkit.stream_processor.truncated_positions import created, event, position, truncated

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(1200)]


def test_a_truncation_and_a_kill_leave_exact_sums(kafka: str, processor_of: ProcessorOf) -> None:
    holders = Holders(kafka, processor_of)
    processor = holders.started(parallelism=2)
    holders.send(0, created(8, "p"), created(16, "q", "b"))
    holders.send(1, created(24, "r", "a", 3))
    holders.wait_for(processor, [position("p"), position("q", "b"), position("r", "a", 3)])

    holders.send(1, truncated(40), created(48, "s", "b", 7))
    holders.wait_for(processor, [position("s", "b", 7)])
    holders.send(0, event("u", 32, after=position("q", "c")), created(56, "p", "a", 2))
    holders.wait_for(processor, [position("s", "b", 7), position("p", "a", 2)])

    processor.kill()
    holders.send(0, truncated(72))
    holders.send(1, event("u", 64, after=position("s", "a", 8)), created(80, "r"))
    processor = holders.started(parallelism=2)
    holders.wait_for(processor, [position("r")])
    holders.send(0, created(88, "p", "b", 5))
    holders.send(1, event("u", 96, after=position("r", "c")))
    holders.wait_for(processor, [position("p", "b", 5), position("r", "c")])
    assert processor.stop() == 0
