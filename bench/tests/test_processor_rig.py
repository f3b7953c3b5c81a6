"""Working off a backlog."""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from bench import processor_rig
from bench.processor_rig import Rig
from bench.processor_workload import SHAPES


class Reader:
    """A processor that has read these numbers of records, one after the other, and then no more."""

    def __init__(self, read: Sequence[int]) -> None:
        self._read = list(read)

    def metric(self, name: str, /, query: str) -> float:
        assert (name, query) == ("stream_processor_input_rows_total", "orders-by-key")
        return float(self._read.pop(0) if len(self._read) > 1 else self._read[0])

    def jvm(self) -> Any:
        return self

    def cpu_times(self) -> Any:
        return self

    user = system = 1.0


def _rig(read: Sequence[int], sent: int) -> Rig:
    load = type("Load", (), {"sent_ms": array("d", [0.0] * sent)})()
    return Rig(SHAPES["latest"], Path(), cast(Any, load), cast(Any, None), cast(Any, Reader(read)))


def test_a_processor_that_reads_nothing_for_a_while_has_not_worked_off_the_backlog(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processor_rig, "LOOK_S", 0.0)

    used = _rig([0, *[4] * 50, 10], sent=10).work_off()

    assert [cpu_s for _, cpu_s in used] == [2.0] * 52


def test_a_processor_that_reads_no_more_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor_rig, "LOOK_S", 0.0)
    monkeypatch.setattr(processor_rig, "SILENT_S", 0.0)

    with pytest.raises(TimeoutError, match="of 10 changes, and no more for 0 s"):
        _rig([4], sent=10).work_off()
