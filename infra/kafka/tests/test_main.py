"""The command `kafka-topics`, against a real broker."""

from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]  # not in its __all__

from kafka_topics.__main__ import main
from testkit.ports import free_ports


@pytest.fixture
def name() -> str:
    return f"declared-{uuid4().hex[:8]}"


def declare(directory: Path, name: str, partitions: int = 3, policy: str = "compact") -> str:
    path = directory / "topics.yaml"
    path.write_text(f"topics: [{{name: {name}, partitions: {partitions}, config: {{cleanup.policy: {policy}}}}}]")
    return str(path)


@pytest.mark.kafka
def test_it_creates_what_is_missing_and_is_content_the_second_time(
    kafka: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = declare(tmp_path, name)
    first = main([file, "--bootstrap-server", kafka, "--replication-factor", "1"])
    said_first = capsys.readouterr().out
    second = main([file, "--bootstrap-server", kafka])
    said_second = capsys.readouterr().out

    assert (first, second) == (0, 0)
    assert f"created {name} with 3 partitions" in said_first
    assert said_second == "1 topics are as the file says, 0 of them new\n"


@pytest.mark.kafka
def test_differences_are_listed_by_name_and_nothing_is_changed(
    kafka: str, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main([declare(tmp_path, name), "--bootstrap-server", kafka])
    capsys.readouterr()

    status = main([declare(tmp_path, name, partitions=5, policy="delete"), "--bootstrap-server", kafka])

    partitions, policy = capsys.readouterr().err.splitlines()
    assert status == 1
    assert partitions.startswith(f"kafka-topics: {name}: has 3 partitions, the file says 5; ")
    assert policy.startswith(f"kafka-topics: {name}: cleanup.policy is compact, the file says delete; ")
    assert policy_of(kafka, name) == "compact"


def policy_of(kafka: str, name: str) -> str:
    resource = ConfigResource(ConfigResource.Type.TOPIC, name)
    admin = AdminClient({"bootstrap.servers": kafka})
    return str(admin.describe_configs([resource])[resource].result(10)["cleanup.policy"].value)


def test_a_broker_that_does_not_come_ends_it_with_one_line(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"

    status = main([declare(tmp_path, name), "--bootstrap-server", address, "--timeout", "0.3"])

    captured = capsys.readouterr()
    assert status == 1
    assert captured.out == f"waiting for a broker at {address}, 0.3 s at most\n"
    assert captured.err.count("\n") == 1
    assert address in captured.err


def test_the_acls_of_groups_have_the_prefix_of_the_properties(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "client.properties").write_text("group.prefix=acme.\n")
    status = main([declare(tmp_path, name), "--acls", "--command-config", str(tmp_path / "client.properties")])

    assert status == 0
    groups = [line for line in capsys.readouterr().out.splitlines() if "--group" in line]
    assert len(groups) == 4
    assert all("--group acme." in line for line in groups)


def test_a_wrong_file_ends_it_with_one_line_naming_the_file_and_the_key(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = declare(tmp_path, name, partitions=0)

    status = main([file])

    assert status == 2
    assert capsys.readouterr().err == (
        f"kafka-topics: {file}: topics[0].partitions: 0 must be a whole number from 1 to 10000\n"
    )


@pytest.mark.parametrize("arguments", [["--timeout", "soon"], ["--timeout", "nan"], ["--replication-factor", "0"]])
def test_a_wrong_argument_is_named(
    tmp_path: Path, name: str, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([declare(tmp_path, name), *arguments])

    assert caught.value.code == 2
    assert f"argument {arguments[0]}: '{arguments[1]}' must be" in capsys.readouterr().err
