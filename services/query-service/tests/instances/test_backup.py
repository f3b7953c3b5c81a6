"""A backup of a running instance fills the directory of one that has lost its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(300)


def command(process: Process, *arguments: object) -> subprocess.CompletedProcess[str]:
    environment = {f"QUERY_SERVICE_{name.upper()}": str(value) for name, value in process.settings.items()}
    return subprocess.run(
        [sys.executable, "-m", "query_service", *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


async def test_a_lost_directory_comes_back_and_the_rest_from_the_topic(scene: Scene, tmp_path: Path) -> None:
    one = scene.launch("query-1", replicas=1)
    scene.write({f"order-{number}": b"old" for number in range(100)})
    scene.write({"order-0": None}, sequence=2)
    await scene.until_applied(one, 101)
    backup = command(one, "backup", tmp_path / "backup")
    while_it_runs = command(one, "restore", tmp_path / "backup")
    scene.write({"order-1": b"new"}, sequence=3)
    one.kill()
    one.wipe()
    restore = command(one, "restore", tmp_path / "backup")
    one.start()
    await scene.until_applied(one, 102)

    assert (backup.returncode, restore.returncode) == (0, 0), backup.stderr + restore.stderr
    assert "4 partitions" in backup.stdout
    assert while_it_runs.returncode == 2
    assert "another instance uses it" in while_it_runs.stderr
    assert await one.served("order-1") == b"new"
    assert one.metric("query_service_restore_records_total") <= 1


def test_an_instance_that_does_not_answer_ends_with_one_line(scene: Scene, tmp_path: Path) -> None:
    refused = command(scene.instance("query-1"), "backup", tmp_path / "backup")

    assert refused.returncode == 2
    assert refused.stderr.startswith("query-service: no instance answers at ")
    assert len(refused.stderr.splitlines()) == 1
