"""Every command of docs/start/one-service.md, with the files of a release and nothing else of the repository."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from testkit.ports import free_ports
from testkit.tutorial import DONE, run_script, script_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "start" / "one-service.md"
PORTS = (
    *("QUERY_SERVICE_PORT", "QUERY_SERVICE_SHARD_PORT", "QUERY_SERVICE_METRICS_PORT"),
    *("WS_EDGE_PORT", "STREAM_PROCESSOR_METRICS_PORT"),
)

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(0)]


@pytest.fixture(scope="module")
def said(kafka: str, index: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of the page's commands."""
    directory = tmp_path_factory.mktemp("page")
    *ports, clocks = map(str, free_ports(len(PORTS) + 1))
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST", "MFLAGS"))}
    environment = {
        **inherited,
        **index,
        **dict(zip(PORTS, ports, strict=True)),
        "PATH": os.defpath + ":" + os.environ["PATH"],
        "STATECAST": str(ROOT),
        "STATECAST_ADDRESS": f"127.0.0.1:{ports[0]}",
        "CLOCKS": f"127.0.0.1:{clocks}",
        "KAFKA": kafka,
    }
    said = run_script(script_of(PAGE), directory, environment)
    logs = "".join(f"== {each.name}\n{each.read_text()[-2000:]}" for each in sorted(directory.glob("*.log")))
    assert f"{DONE}\n" in said, f"{said[-6000:]}\n{logs}"
    return said


def test_the_query_service_alone_serves_topics_of_a_team(said: str) -> None:
    assert '"cents":45' in said.replace(" ", "")
    assert '"pieces":"12"' in said.replace(" ", "")


def test_the_edge_alone_pushes_rows_of_another_query_service(said: str) -> None:
    times = re.findall(r'"time":"(\d\d:\d\d:\d\d)","city":"tokyo"|"city":"tokyo","time":"(\d\d:\d\d:\d\d)"', said)

    assert len(set(times)) == 3


def test_any_consumer_reads_the_topic_of_the_processor_alone(said: str) -> None:
    lines = re.findall(r"^(Ghent|Bruges) parcel-1 (.*)$", said, re.MULTILINE)

    assert lines[0] == ("Ghent", "on its way")
    assert sorted(lines[1:]) == [("Bruges", "on its way"), ("Ghent", "has left")]
