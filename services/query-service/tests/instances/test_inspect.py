"""The command that looks into a data directory, beside the instance that uses it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.query_instances import Scene

pytestmark = pytest.mark.timeout(180)


def inspect(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "query_service", "inspect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


async def test_it_counts_what_a_running_instance_has_written(scene: Scene, tmp_path: Path) -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write({f"order-{number}": b"row" for number in range(20)})
    scene.write({"order-0": None}, sequence=2)
    await scene.until_applied(one, 21)
    report = json.loads(inspect(tmp_path / "query-1", "--json").stdout)
    table = inspect(tmp_path / "query-1")

    assert sum(each["rows"] for each in report["partitions"]) == 19
    assert sum(each["deletions"] for each in report["partitions"]) == 1
    assert sum(each["next_offset"] for each in report["partitions"]) == 21
    assert table.returncode == 0
    assert table.stdout.count("rows ") >= 4
    assert one.running


def test_a_directory_that_there_is_not_ends_with_one_line(tmp_path: Path) -> None:
    refused = inspect(tmp_path / "nowhere")

    assert refused.returncode == 2
    assert refused.stderr.startswith("query-service: ")
    assert len(refused.stderr.splitlines()) == 1


def test_a_directory_with_something_unreadable_ends_with_status_one(tmp_path: Path) -> None:
    (tmp_path / "rows" / "thesis").mkdir(parents=True)
    completed = inspect(tmp_path)

    assert completed.returncode == 1
    assert "rows/thesis" in completed.stdout
