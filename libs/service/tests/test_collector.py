"""A process with many objects."""

import subprocess
import sys

PROGRAM = """
import gc
from statecast_service.collector import collect_seldom

collect_seldom()
collections = gc.get_stats()[2]["collections"]
held = [[number] for number in range(200_000)]
print(gc.get_freeze_count() > 0, gc.get_stats()[2]["collections"] - collections)
"""


def test_many_objects_that_stay_cause_no_full_collection() -> None:
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert run.stdout.split() == ["True", "0"]
