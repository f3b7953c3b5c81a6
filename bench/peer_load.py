"""The load on one instance: single gets by ghz, and gets and batches by Python."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import cycle
from pathlib import Path
from typing import Any

import grpc

from statecast.partitioning import partition_of
from statecast.query.v1.query_pb2 import KeyQuery
from statecast.query.v1.query_service_pb2 import (
    BatchGetStatesRequest,
    BatchGetStatesResponse,
    GetStateRequest,
    ListShardsRequest,
)
from statecast.query.v1.query_service_pb2_grpc import QueryServiceStub
from statecast.state.v1.state_pb2 import StateKey
from statecast_client.client import StatecastClient
from testkit.query_cluster import STORE

GHZ = Path(sys.executable).parent / "ghz"
METHOD = "statecast.query.v1.QueryService"
IN_FLIGHT = 32
CALL_S = 60.0
BATCHES_IN_FLIGHT = 2
BATCH_KEYS = 500


@dataclass(frozen=True)
class Report:
    """The measurements of ghz: the calls, their rate, and the median of their times."""

    calls: int
    per_s: float
    p50_ms: float


def report_of(text: str) -> Report:
    """Reads ghz's report in JSON. Raises RuntimeError when a call has failed."""
    report = json.loads(text)
    failed = {code: count for code, count in report["statusCodeDistribution"].items() if code != "OK"}
    if failed:
        raise RuntimeError(f"calls have failed: {failed}, {report.get('errorDistribution')}")
    [p50_ns] = [each["latency"] for each in report["latencyDistribution"] if each["percentage"] == 50]
    return Report(report["count"], report["rps"], p50_ns / 1e6)


def ghz_gets(address: str, keys: Sequence[str], seconds: float) -> Report:
    """Gets the keys in turn over one connection. Raises RuntimeError when a call fails or there is no ghz."""
    if not GHZ.exists():
        raise RuntimeError(f"{GHZ} is missing: make bench-peer installs it where there is Go")
    with tempfile.TemporaryDirectory(prefix="statecast-ghz-") as directory:
        data, output = Path(directory) / "data.json", Path(directory) / "report.json"
        data.write_text(json.dumps([{"store": STORE, "key": {"group": key}} for key in keys]))
        contract = str(files("statecast") / "contract.binpb")
        command = [str(GHZ), "--insecure", "--protoset", contract, "--call", f"{METHOD}/GetState"]
        command += ["--concurrency", str(IN_FLIGHT), "--duration", f"{seconds:g}s", "--duration-stop", "wait"]
        command += ["--disable-template-data", "--disable-template-functions"]
        command += ["--data-file", str(data), "--format", "json", "--output", str(output), address]
        finished = subprocess.run(command, check=False, capture_output=True, text=True)
        if finished.returncode:
            raise RuntimeError(f"ghz has failed: {finished.stderr}")
        return report_of(output.read_text())


def split_by_owner(address: str, keys: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the keys that the instance owns, and those that it passes on."""
    with grpc.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        shards = stub.ListShards(ListShardsRequest(store=STORE), timeout=10).shards
    owners = {shard.partition: each.address for shard in shards for each in shard.replicas if each.rank == 1}
    owned = [key for key in keys if owners[partition_of(key, len(shards))] == address]
    return owned, sorted(set(keys) - set(owned))


async def stub_gets(address: str, keys: Sequence[str], seconds: float, in_flight: int = IN_FLIGHT) -> float:
    """Gets a second by the stub that is generated for Python."""
    requests = cycle([GetStateRequest(store=STORE, key=StateKey(group=key)) for key in keys])
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        return (await saturate(lambda: stub.GetState(next(requests)), in_flight, seconds))[0]


async def client_gets(
    addresses: Sequence[str], keys: Sequence[str], seconds: float, in_flight: int = IN_FLIGHT
) -> float:
    """Gets a second by our client library, which calls each key's owner."""
    turns = cycle(keys)
    # The stub has no deadline either.
    async with StatecastClient(addresses, timeout_s=CALL_S) as client:
        return (await saturate(lambda: client.get(STORE, next(turns)), in_flight, seconds))[0]


def batch_requests(keys: Sequence[str]) -> list[BatchGetStatesRequest]:
    """Returns batches of BATCH_KEYS keys; drops the last keys if they do not fill one."""
    whole = range(0, len(keys) - BATCH_KEYS + 1, BATCH_KEYS)
    return [
        BatchGetStatesRequest(
            store=STORE, keys=[KeyQuery(key=StateKey(group=key)) for key in keys[at : at + BATCH_KEYS]]
        )
        for at in whole
    ]


async def known_requests(address: str, requests: Sequence[BatchGetStatesRequest]) -> list[BatchGetStatesRequest]:
    """Returns the same batches, each key with the position that it has now."""
    return [_with_positions(request, await _batch(address, request)) for request in requests]


async def batches(
    address: str, requests: Sequence[BatchGetStatesRequest], results: int, seconds: float
) -> tuple[float, int]:
    """Returns keys a second, and keys, for batches that are encoded beforehand; answers are not decoded.

    Raises ValueError unless the first answer has `results` results.
    """
    answer = await _batch(address, requests[0])
    if len(answer.results) != results or any(each.HasField("error") for each in answer.results):
        raise ValueError(f"a batch of {len(requests[0].keys)} keys has {len(answer.results)} results, or errors")
    encoded = cycle([request.SerializeToString() for request in requests])
    async with grpc.aio.insecure_channel(address) as channel:
        call: Any = channel.unary_unary(f"/{METHOD}/BatchGetStates")
        per_s, calls = await saturate(lambda: call(next(encoded)), BATCHES_IN_FLIGHT, seconds)
        return per_s * BATCH_KEYS, calls * BATCH_KEYS


async def saturate(call: Callable[[], Awaitable[object]], in_flight: int, seconds: float) -> tuple[float, int]:
    """Returns calls a second, and calls, with `in_flight` calls at a time for `seconds`. Passes on errors of a call."""
    done = 0
    start = time.perf_counter()

    async def loop() -> None:
        nonlocal done
        while time.perf_counter() - start < seconds:
            await call()
            done += 1

    await asyncio.gather(*(loop() for _ in range(in_flight)))
    return done / (time.perf_counter() - start), done


def _with_positions(request: BatchGetStatesRequest, answer: BatchGetStatesResponse) -> BatchGetStatesRequest:
    known = BatchGetStatesRequest(store=request.store)
    for result in answer.results:
        known.keys.add(key=request.keys[result.index].key, after=result.state.position)
    return known


async def _batch(address: str, request: BatchGetStatesRequest) -> BatchGetStatesResponse:
    async with grpc.aio.insecure_channel(address) as channel:
        stub: Any = QueryServiceStub(channel)
        answer: BatchGetStatesResponse = await stub.BatchGetStates(request)
        return answer
