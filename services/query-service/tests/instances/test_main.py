"""How an instance starts, and how it says that it cannot."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from statecast.query.v1 import query_service_pb2 as query
from testkit.broker import BrokerProcess
from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(180)


def refusal(instance: Process) -> str:
    """Starts an instance that cannot start; returns the one line that says why."""
    instance.start()
    status = instance.wait_end()
    lines = instance.log.splitlines()
    assert status == 2, instance.log
    assert len(lines) == 1, instance.log
    return lines[0]


def test_a_bad_setting_is_named(scene: Scene) -> None:
    line = refusal(scene.instance("query-1", replicas="many"))

    assert line.startswith("query-service: QUERY_SERVICE_REPLICAS='many': ")


def test_a_certificate_that_cannot_be_read_is_named(scene: Scene, tmp_path: Path) -> None:
    missing = tmp_path / "missing.pem"
    line = refusal(scene.instance("query-1", tls_certificate=missing, tls_key=missing))

    assert line.startswith(f"query-service: QUERY_SERVICE_TLS_CERTIFICATE={missing}: it cannot be read: ")


@pytest.mark.parametrize("name", ["PORT", "SHARD_PORT", "METRICS_PORT"])
def test_a_port_in_use_is_named(scene: Scene, name: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refusal(scene.instance("query-1", **{name.lower(): port}))

    assert f"QUERY_SERVICE_{name}={port}: " in line
    assert "in use" in line


def test_a_wrong_stores_file_is_named(scene: Scene, tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text("stores: [{name: a, topic: a, message: statecast.orders.v1.Odrer}]")
    line = refusal(scene.instance("query-1", stores=tmp_path / "wrong.yaml"))

    assert "did you mean statecast.orders.v1.Order?" in line


async def test_two_instances_cannot_share_a_directory(scene: Scene, tmp_path: Path) -> None:
    await scene.until_ready(scene.launch("query-1", data_directory=tmp_path / "shared"))
    line = refusal(scene.instance("query-2", data_directory=tmp_path / "shared"))

    assert "another instance uses it" in line


async def test_two_live_instances_cannot_have_one_name(scene: Scene, tmp_path: Path) -> None:
    one = scene.launch("query-1")
    await scene.until_ready(one)
    other = scene.launch("query-1", data_directory=tmp_path / "other")

    assert other.wait_end() == 2
    assert f"query-service: QUERY_SERVICE_INSTANCE=query-1: an instance at {one.address}" in other.log
    assert one.is_ready()
    assert one.log.count("members") == 1, "the first one was disturbed"


async def test_an_instance_starts_beside_its_dead_self_at_another_address(scene: Scene, tmp_path: Path) -> None:
    one = scene.launch("query-1", session_timeout_ms=30_000)
    await scene.until_ready(one)
    one.kill()
    again = scene.launch("query-1", data_directory=tmp_path / "other", session_timeout_ms=30_000)

    await scene.until_ready(again)


async def test_health_and_reflection_are_served_and_the_internal_service_is_not(scene: Scene) -> None:
    one = scene.launch("query-1")
    await scene.until_ready(one)
    health = health_pb2_grpc.HealthStub(one.channel)
    for service in ("", "statecast.query.v1.QueryService"):
        answer = await health.Check(health_pb2.HealthCheckRequest(service=service))
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
    internal: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = one.channel.unary_unary(
        "/statecast.shard.v1.ShardService/ListPartitions"
    )
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await internal(b"")

    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert one.metric("query_service_serving") == 4


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    """A broker that the test starts and kills."""
    broker = BrokerProcess(tmp_path / "kafka")
    yield broker
    broker.kill()


async def test_it_waits_for_a_broker_that_is_not_there_yet(scene: Scene, broker: BrokerProcess) -> None:
    one = scene.launch("query-1", kafka_bootstrap=broker.bootstrap)
    await scene.until(lambda: "kafka does not answer" in one.log, one)
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await one.stub.ListShards(query.ListShardsRequest(store="rows"))
    assert refused.value.code() == grpc.StatusCode.UNAVAILABLE
    assert "waiting for kafka" in (one.unready_reason() or "")

    broker.start()
    scene.move_to(broker.bootstrap)
    await scene.until_ready(one)

    assert "kafka answers again" in one.log
    one.terminate()
    await scene.until(lambda: not one.running, one)
    assert one.exit_status == 0


async def test_it_answers_while_the_broker_is_gone_and_goes_on_when_it_is_back(
    scene: Scene, broker: BrokerProcess
) -> None:
    broker.start()
    one = scene.launch("query-1", kafka_bootstrap=broker.bootstrap)
    scene.move_to(broker.bootstrap)
    scene.write({"a": b"before"})
    await scene.until_applied(one, 1)
    broker.kill()
    killed_at = time.monotonic()
    lag_ms = 0
    while lag_ms < 1500:
        answer = await one.read("a")
        lag_ms = answer.freshness.lag_ms
        assert answer.state.payload == b"before"
        assert time.monotonic() < killed_at + 30, "the lag must grow while the broker is gone"
    broker.start()
    scene.write({"a": b"after"}, sequence=2)

    assert (await scene.until_newer(one, "a", b"before")).state.payload == b"after"
