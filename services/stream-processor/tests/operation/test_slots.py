"""Task slots against the master."""

import pytest

from stream_processor.errors import TooFewSlotsError
from stream_processor.operation.slots import choose_master, needed


def test_realtime_queries_hold_all_their_tasks() -> None:
    assert needed([8, 8, 4], any_micro_batch=False) == 20


def test_micro_batch_queries_share_a_few() -> None:
    assert needed([8], any_micro_batch=True) == 10
    assert needed([], any_micro_batch=True) == 2


def test_without_a_master_it_is_a_local_one_of_the_right_size() -> None:
    assert choose_master("", 28, cores=2) == "local[28]"


@pytest.mark.parametrize("given", ["local[28]", "local[40,3]", "spark://master:7077", "k8s://https://host"])
def test_a_master_that_can_be_large_enough_is_taken(given: str) -> None:
    assert choose_master(given, 28, cores=2) == given


@pytest.mark.parametrize(("given", "offered"), [("local[8]", 8), ("local", 1), ("local[*]", 2)])
def test_a_local_master_that_is_too_small_is_refused(given: str, offered: int) -> None:
    with pytest.raises(TooFewSlotsError, match=f"gives {offered} task slots, the pipelines need 28"):
        choose_master(given, 28, cores=2)
