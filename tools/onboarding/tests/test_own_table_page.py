"""Every command of docs/start/own-table.md, against a real PostgreSQL, Debezium and Kafka."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from testkit import processes
from testkit.debezium import postgres_connector, running_connect
from testkit.ports import free_ports
from testkit.postgres import running_postgres
from testkit.waiting import scaled

PAGE = Path(__file__).parents[3] / "docs" / "start" / "own-table.md"
TIMEOUT_S = 900.0
MORE_COLUMNS = """
ALTER TABLE shipments ADD opens time, ADD days date[], ADD patience interval;
UPDATE shipments SET opens = '10:00:00.5', days = '{2024-08-28}', patience = '1 month 90 minutes';
"""
PORTS = (
    "QUERY_SERVICE_PORT",
    "QUERY_SERVICE_SHARD_PORT",
    "QUERY_SERVICE_METRICS_PORT",
    "STREAM_PROCESSOR_METRICS_PORT",
)

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(0)]


def commands() -> str:
    """What a person would type: the indented lines of the page."""
    lines = [line[4:] for line in PAGE.read_text().splitlines() if line.startswith("    ")]
    return "\n".join(["set -euo pipefail", "trap 'kill $(jobs -p); wait' EXIT", *lines, "echo everything was run"])


def test_each_command_of_the_page_works(kafka: str, tmp_path: Path) -> None:
    [sql] = re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with running_postgres(tmp_path / "postgres") as database:
        database.execute("CREATE TABLE others (id int PRIMARY KEY)")
        database.execute(sql)
        database.execute(MORE_COLUMNS)
        other = postgres_connector(database.server, ["others"], slot_name="others", publication_name="others")
        with running_connect(tmp_path / "connect", kafka, other) as connect:
            ports = dict(zip((*PORTS, "WS_EDGE_PORT"), map(str, free_ports(5)), strict=True))
            environment = {
                **os.environ,
                **ports,
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                "STATECAST_DATABASE": database.server.dsn,
                "STATECAST_ADDRESS": f"127.0.0.1:{ports['QUERY_SERVICE_PORT']}",
                "WS_EDGE_QUERY_ADDRESSES": f"127.0.0.1:{ports['QUERY_SERVICE_PORT']}",
                "PASSWORD": database.server.password,
                "KAFKA": kafka,
                "CONNECT": f"http://127.0.0.1:{connect.worker.port}",
            }
            said = run_script(commands(), tmp_path, environment)

    assert "everything was run\n" in said, said[-6000:]
    assert '"weight": "1.250"' in said, said[-6000:]
    for value in ('"10:00:00.5"', '"2024-08-28"', '"P0Y1M0DT1H30M0S"'):
        assert value in said, said[-6000:]
    assert '"state":"STATE_PACKED"' in said
    assert '"customer_id":"alice"' in said


def run_script(script: str, directory: Path, environment: dict[str, str]) -> str:
    """Runs a script with all that it starts, and returns what it wrote."""
    log = directory / "log"
    with log.open("w") as out:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=directory, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        shell.wait(scaled(TIMEOUT_S))
    except subprocess.TimeoutExpired:
        processes.kill_family(shell.pid)
        shell.wait()
    return log.read_text()
