"""Counts the task slots that real-time queries hold for good, and checks that the master gives so many."""

import re
from collections.abc import Iterable

from stream_processor.errors import TooFewSlotsError

MICRO_BATCH_SLOTS = 2
"""What all micro-batch queries share; their tasks end, so that fewer slots only slow them."""

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?")


def choose_master(given: str, slots: int, cores: int) -> str:
    """The master to use: the given one, or `local[slots]`. Raises TooFewSlotsError if a local one is too small.

    `cores` is what `local[*]` stands for. How many slots a cluster gives is known when its executors have come.
    """
    if not given:
        return f"local[{slots}]"
    found = _LOCAL.fullmatch(given)
    if found is not None:
        offered = {None: 1, "*": cores}.get(found[1]) or int(found[1])
        if offered < slots:
            raise TooFewSlotsError(
                f"STREAM_PROCESSOR_MASTER: {given} gives {offered} task slots, the pipelines need {slots}: "
                f"leave it empty or set local[{slots}]"
            )
    return given


def needed(realtime: Iterable[int], any_micro_batch: bool) -> int:
    """The slots for real-time queries with so many tasks each, and for micro-batch queries beside them."""
    return max(sum(realtime) + (MICRO_BATCH_SLOTS if any_micro_batch else 0), 1)
