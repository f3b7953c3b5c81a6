"""Runs the chosen cases in a few rounds, each side by side, and keeps the results that are not as they say."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from kit.case import Case
from kit.histories import CASE
from kit.run import Run

HISTORIES = int(os.environ.get("HISTORIES", "200"))
"""How many random histories are played."""


class Results:
    """The results of each case that are not as it says. A round runs when the first of its cases is asked for.

    Long cases run by their groups: one processor has no room for all pipelines on a small machine.
    """

    def __init__(self, cases: Sequence[Case], directory: Path) -> None:
        self._cases = cases
        self._directory = directory
        self._results: dict[str, list[str]] = {}

    def of(self, case: Case) -> list[str]:
        if case.name not in self._results:
            chosen = [each for each in self._cases if _round(each) == _round(case)]
            # A round that breaks off runs once, not for each of its cases again.
            self._results |= {each.name: [f"the round of {case.name} has broken off"] for each in chosen}
            with ExitStack() as stack:
                run = Run(chosen, HISTORIES if CASE in chosen else 0, self._directory / _round(case), stack)
                self._results |= run.results()
        return self._results[case.name]


def _round(case: Case) -> str:
    return case.group if case.long else "short"
