"""The stack file, as it is written and as it is read."""

from pathlib import Path

import pytest

from local_stack import LocalStackError
from local_stack.settings import Settings
from local_stack.stack_directory import Entry
from local_stack.stack_file import Basic, Credentials, read_stack, stack_text


def test_a_reader_finds_what_the_supervisor_wrote(tmp_path: Path) -> None:
    settings = Settings(directory=tmp_path, gateway_https_port=443, query_2_shard_port=7, edge_1_port=8)
    users = {"alice": Credentials(customer_id="customer-0001", basic=Basic(username="alice", password="secret"))}
    entries = {"broker": Entry(pid=12, log=tmp_path / "broker.log")}
    (tmp_path / "stack.json").write_text(stack_text(settings, users, entries))

    stack = read_stack(tmp_path / "stack.json")

    assert stack.gateway.wss == "wss://127.0.0.1:443"
    assert stack.gateway.ca_certificate == tmp_path / "tls" / "ca.pem"
    assert stack.queries[1].shard_address == "127.0.0.1:7"
    assert stack.edges[0].metrics == "http://127.0.0.1:8/metrics"
    assert stack.processes["broker"].model_dump() == {"pid": 12, "log": tmp_path / "broker.log"}
    assert stack.credentials == users


def test_without_a_stack_there_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(LocalStackError, match="`make up` starts one"):
        read_stack(tmp_path / "stack.json")
