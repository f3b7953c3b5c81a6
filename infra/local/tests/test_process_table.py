"""The table of the stack's processes."""

from pathlib import Path

import httpx
import pytest

from local_stack.certificates import Certificates
from local_stack.gateway import Gateway
from local_stack.ports import assign_ports
from local_stack.process_spec import ProcessSpec
from local_stack.process_table import ProcessTable
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import Credentials


def table(directory: Path, settings: Settings) -> dict[str, ProcessSpec]:
    with_ports = settings.model_copy(update=assign_ports(settings))
    gateway = Gateway(directory, with_ports, Certificates(directory), "secret", Credentials())
    specs = ProcessTable(with_ports, StackDirectory(directory), gateway, "secret", httpx.AsyncClient()).specs()
    return {spec.name: spec for spec in specs}


@pytest.fixture
def specs(tmp_path: Path) -> dict[str, ProcessSpec]:
    return table(tmp_path, Settings(rate=7, replicas=1))


def test_every_process_comes_after_processes_of_the_table(specs: dict[str, ProcessSpec]) -> None:
    names = list(specs)

    for place, spec in enumerate(specs.values()):
        assert set(spec.after) <= set(names[:place])


def test_every_program_but_the_jvm_is_installed(specs: dict[str, ProcessSpec]) -> None:
    missing = [
        spec.command[0] for spec in specs.values() if spec.name != "broker" and not Path(spec.command[0]).exists()
    ]

    assert not missing


def test_settings_reach_the_services(specs: dict[str, ProcessSpec]) -> None:
    assert specs["cdc-simulator"].environment["CDC_SIMULATOR_RATE"] == "7"
    assert specs["query-2"].environment["QUERY_SERVICE_REPLICAS"] == "1"


def test_the_processor_runs_every_shipped_pipeline(specs: dict[str, ProcessSpec]) -> None:
    files = [Path(argument).name for argument in specs["stream-processor"].command[2:]]

    assert {"orders-by-key.yaml", "orders-by-customer.yaml", "orders-by-item.yaml"} <= set(files)


def test_the_checkpoint_interval_is_the_pipelines_own_unless_set(tmp_path: Path, specs: dict[str, ProcessSpec]) -> None:
    name = "STREAM_PROCESSOR_CHECKPOINT_INTERVAL"
    chosen = table(tmp_path, Settings(checkpoint_interval="10s"))

    assert name not in specs["stream-processor"].environment
    assert chosen["stream-processor"].environment[name] == "10s"


def test_edges_know_both_query_instances_and_the_secret(specs: dict[str, ProcessSpec]) -> None:
    edge = specs["edge-1"].environment

    ports = [specs[name].environment["QUERY_SERVICE_PORT"] for name in ("query-1", "query-2")]
    assert edge["WS_EDGE_QUERY_ADDRESSES"] == ",".join(f"127.0.0.1:{port}" for port in ports)
    assert edge["WS_EDGE_GATEWAY_SECRET"] == "secret"


def test_only_the_broker_is_stopped_last(specs: dict[str, ProcessSpec]) -> None:
    assert [spec.name for spec in specs.values() if spec.stops_last] == ["broker"]
