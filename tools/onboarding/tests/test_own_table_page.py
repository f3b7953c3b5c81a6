"""Every command of docs/start/own-table.md, against a real PostgreSQL, Debezium and Kafka."""

import os
import sys
from pathlib import Path

import pytest

from testkit.debezium import postgres_connector, running_connect
from testkit.ports import free_ports
from testkit.postgres import running_postgres
from testkit.tutorial import DONE, run_script, script_of

PAGE = Path(__file__).parents[3] / "docs" / "start" / "own-table.md"
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

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(0)]


def test_each_command_of_the_page_works(kafka: str, tmp_path: Path) -> None:
    with running_postgres(tmp_path / "postgres") as database:
        database.execute("CREATE TABLE others (id int PRIMARY KEY)")
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
            said = run_script(script_of(PAGE, MORE_COLUMNS), tmp_path, environment)

    assert f"{DONE}\n" in said, said[-6000:]
    assert '"weight": "1.250"' in said, said[-6000:]
    for value in ('"10:00:00.5"', '"2024-08-28"', '"P0Y1M0DT1H30M0S"'):
        assert value in said, said[-6000:]
    assert '"state":"STATE_PACKED"' in said
    assert '"customer_id":"alice"' in said
