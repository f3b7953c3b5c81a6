"""Instances that speak TLS with callers and with each other."""

from pathlib import Path

import grpc
import pytest
import trustme

from statecast.query.v1 import query_service_pb2 as query
from statecast.query.v1 import query_service_pb2_grpc as query_grpc
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1 import shard_service_pb2_grpc as shard_grpc
from statecast.state.v1 import state_pb2
from testkit.certificates import PemFiles
from testkit.query_instances import Process, Scene

pytestmark = pytest.mark.timeout(180)

GROUPS = [f"order-{number:06d}" for number in range(1, 41)]


def issued(directory: Path) -> PemFiles:
    """Issues a certificate of a CA of its own."""
    directory.mkdir()
    return PemFiles(directory, trustme.CA())


def caller(files: PemFiles, *, with_certificate: bool) -> grpc.ChannelCredentials:
    """Returns the credentials of a caller that trusts this CA."""
    pair = (files.key.read_bytes(), files.certificate.read_bytes()) if with_certificate else ()
    return grpc.ssl_channel_credentials(files.ca.read_bytes(), *pair)


class Encrypted:
    """Two instances, each with the rows of its own partitions alone."""

    def __init__(self, scene: Scene, directory: Path) -> None:
        self.callers, self.peers = issued(directory / "callers"), issued(directory / "peers")
        settings = {
            "replicas": 1,
            "tls_certificate": self.callers.certificate,
            "tls_key": self.callers.key,
            "tls_client_ca": self.callers.ca,
            "shard_tls_certificate": self.peers.certificate,
            "shard_tls_key": self.peers.key,
            "shard_tls_ca": self.peers.ca,
        }
        self.instances = [scene.launch(name, **settings) for name in ("query-1", "query-2")]


@pytest.fixture
async def encrypted(scene: Scene, tmp_path: Path) -> Encrypted:
    encrypted = Encrypted(scene, tmp_path)
    scene.write(dict.fromkeys(GROUPS, b"row"))
    await scene.until_ready(*encrypted.instances)
    return encrypted


def stub_of(channel: grpc.aio.Channel) -> "query_grpc.QueryServiceAsyncStub":
    stub: query_grpc.QueryServiceAsyncStub = query_grpc.QueryServiceStub(channel)
    return stub


async def answered_by(process: Process, credentials: grpc.ChannelCredentials) -> set[str]:
    """Reads all rows by one instance; returns the instances that answered. Rows not served yet are left out."""
    names: set[str] = set()
    async with grpc.aio.secure_channel(process.address, credentials) as channel:
        for group in GROUPS:
            request = query.GetStateRequest(store="rows", key=state_pb2.StateKey(group=group))
            try:
                names.add((await stub_of(channel).GetState(request, timeout=5)).freshness.answered_by)
            except grpc.aio.AioRpcError:
                continue
    return names


async def test_callers_and_peers_show_each_other_their_certificates(encrypted: Encrypted, scene: Scene) -> None:
    one = encrypted.instances[0]

    async def both_answer() -> bool:
        return await answered_by(one, caller(encrypted.callers, with_certificate=True)) == {"query-1", "query-2"}

    await scene.until(both_answer, one)

    assert await answered_by(one, caller(encrypted.callers, with_certificate=False)) == set()
    assert await answered_by(one, caller(encrypted.peers, with_certificate=True)) == set()


async def test_nobody_but_a_peer_reaches_the_internal_port(encrypted: Encrypted, scene: Scene) -> None:
    address = encrypted.instances[0].shard_address
    outsiders = [
        grpc.aio.insecure_channel(address),
        grpc.aio.secure_channel(address, caller(encrypted.peers, with_certificate=False)),
        grpc.aio.secure_channel(address, caller(encrypted.callers, with_certificate=True)),
    ]
    for channel in outsiders:
        stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.ListPartitions(shard.ListPartitionsRequest(), timeout=5)
        await channel.close()

        assert refused.value.code() == grpc.StatusCode.UNAVAILABLE

    async with grpc.aio.secure_channel(address, caller(encrypted.peers, with_certificate=True)) as channel:
        peer: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(channel)
        answer = await peer.ListPartitions(shard.ListPartitionsRequest(), timeout=5)

    assert {each.store for each in answer.partitions} == {"rows"}


async def test_the_internal_service_is_not_on_the_public_port(encrypted: Encrypted) -> None:
    credentials = caller(encrypted.callers, with_certificate=True)
    async with grpc.aio.secure_channel(encrypted.instances[0].address, credentials) as channel:
        stub: shard_grpc.ShardServiceAsyncStub = shard_grpc.ShardServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await stub.ListPartitions(shard.ListPartitionsRequest(), timeout=5)

    assert refused.value.code() == grpc.StatusCode.UNIMPLEMENTED
