"""Many members of a query service's group in one process, which a benchmark asks how many others each one knows."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection

import grpc

from query_service.cluster.membership import Membership
from query_service.cluster.shard_map import RULES, Member
from query_service.server.shard_channel import members_at, message_of
from query_service.settings import Settings
from statecast.shard.v1 import shard_service_pb2 as shard
from testkit.ports import free_port

ZONES = "abc"
_SHARD_SERVICE = shard.DESCRIPTOR.services_by_name["ShardService"].full_name


def store_topics(stores: int) -> dict[str, str]:
    """Returns the topic of each store, with a prefix as a shared Kafka asks for one."""
    return {f"store-{number:03d}": f"acme.production.store-{number:03d}.v1" for number in range(stores)}


@dataclass
class ScaledMember:
    """One real member, with an internal service that tells who it is, and the members that it knows."""

    number: int
    bootstrap: str
    group: str
    stores: int
    known: frozenset[Member] = field(default=frozenset(), init=False)

    def __post_init__(self) -> None:
        topics, port = store_topics(self.stores), free_port()
        settings = Settings(kafka_bootstrap=self.bootstrap, group_id=self.group)
        addresses = f"127.0.0.1:{port + 1}", f"127.0.0.1:{port}"
        zone = ZONES[self.number % len(ZONES)]
        name = f"query-service-{self.number}.query-service.statecast.svc.cluster.local"
        self.me = Member(name, *addresses, time.time_ns() // 1_000_000, tuple(topics.items()), zone, RULES)
        self._server = grpc.server(ThreadPoolExecutor(1))
        described: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._describe)
        self._server.add_generic_rpc_handlers(
            [grpc.method_handlers_generic_handler(_SHARD_SERVICE, {"DescribeMember": described})]
        )
        self._server.add_insecure_port(self.me.shard_address)
        self._membership = Membership(
            settings, self.me, frozenset(topics.values()), self._learn, partial(members_at, tls=None)
        )

    def start(self) -> None:
        """Joins the group."""
        self._server.start()
        self._membership.start()

    def stop(self) -> None:
        """Leaves the group."""
        self._membership.stop(30)
        self._server.stop(0)

    def _describe(self, _request: bytes, _context: grpc.ServicerContext) -> bytes:
        return shard.DescribeMemberResponse(member=message_of(self.me)).SerializeToString()

    def _learn(self, members: frozenset[Member]) -> None:
        self.known = members

    @property
    def resting(self) -> int:
        """The number of members that it knows of a group that it reads no more; 0 while it reads it."""
        return len(self.known) if self._membership.is_settled else 0


def run_members(connection: Connection, numbers: Sequence[int], bootstrap: str, group: str, stores: int) -> None:
    """Runs these members, and answers "known" and "resting" with how many members each of them knows; ends after None.

    Sends True before they join: what comes before is Python's own start.
    """
    members = [ScaledMember(number, bootstrap, group, stores) for number in numbers]
    connection.send(True)
    for member in members:
        member.start()
    while (asked := connection.recv()) is not None:
        connection.send([len(each.known) if asked == "known" else each.resting for each in members])
    with ThreadPoolExecutor(len(members)) as leaving:
        list(leaving.map(ScaledMember.stop, members))
    connection.send(None)
