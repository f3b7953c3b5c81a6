"""Waiting for a cluster's task slots."""

from dataclasses import dataclass

import pytest
from pyspark.sql import SparkSession

from stream_processor.operation.executors import SparkSlots, wait_for_slots


@dataclass
class FakeSlots:
    """As many slots as `count` says."""

    count: int

    def offered(self) -> int:
        return self.count


def test_it_waits_until_enough_executors_have_come_and_says_how_many_are_missing() -> None:
    slots, told = FakeSlots(12), list[str]()

    def pause(_seconds: float) -> bool:
        slots.count = 24
        return False

    assert wait_for_slots(slots, 20, pause, told.append)
    assert told == ["the executors give 12 task slots, the pipelines need 20: add workers or cores"]


def test_it_gives_up_when_it_is_told_to_stop() -> None:
    assert not wait_for_slots(FakeSlots(0), 1, lambda _seconds: True, lambda _reason: None)


@pytest.mark.spark
def test_a_local_master_gives_the_slots_of_its_name(spark: SparkSession) -> None:
    assert SparkSlots(spark).offered() == 2
