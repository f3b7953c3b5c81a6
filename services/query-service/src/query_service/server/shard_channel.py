"""Connections to the internal service of an instance."""

from collections.abc import Collection
from contextlib import ExitStack, suppress
from typing import Any

import grpc

from query_service.cluster.shard_map import Member
from statecast.calls import RECONNECTING
from statecast.shard.v1 import shard_service_pb2 as shard
from statecast.shard.v1.shard_service_pb2_grpc import ShardServiceStub
from statecast_service.tls import Tls

FEATURES = frozenset(shard.Feature.keys()) - {"FEATURE_UNSPECIFIED"}
"""All that this release can do."""
_FEATURES_OF_0_2 = frozenset({"FEATURE_GROUP_WINDOWS"})
"""Those of members that tell their facts, but no features."""
_ASK_S = 1.0
_NO_PROXY = ("grpc.enable_http_proxy", 0)
_OPTIONS = (
    *RECONNECTING,
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 2_000),
    _NO_PROXY,
)


def shard_channel(address: str, tls: Tls | None, *options: tuple[str, int]) -> grpc.aio.Channel:
    """Connects at once; `options` are gRPC's, beside those of every such connection."""
    channel: grpc.aio.Channel = _opened(grpc.aio, address, tls, (*_OPTIONS, *options))
    return channel


def _opened(kind: Any, address: str, tls: Tls | None, options: tuple[tuple[str, int], ...]) -> Any:
    """Returns a channel of `grpc` or `grpc.aio`, in plain text without `tls`."""
    if tls is None:
        return kind.insecure_channel(address, options=options)
    return kind.secure_channel(address, tls.channel_credentials(), options=options)


def message_of(member: Member) -> shard.Member:
    """Returns the facts of a member as it tells them."""
    return shard.Member(
        version=member.version,
        instance=member.instance,
        address=member.address,
        shard_address=member.shard_address,
        started_ms=member.started_ms,
        zone=member.zone,
        features=[shard.Feature.Value(name) for name in sorted(member.features)],
        topics=[shard.StoreTopic(store=store, topic=topic) for store, topic in member.topics],
        settings=member.settings,
    )


def member_of(message: shard.Member) -> Member:
    """Returns the member that told its facts; of a newer version, those that this one knows."""
    topics = tuple((each.store, each.topic) for each in message.topics)
    identity = message.instance, message.address, message.shard_address, message.started_ms
    known = {each for each in message.features if each in shard.Feature.values()}
    features = frozenset(map(shard.Feature.Name, known)) or _FEATURES_OF_0_2
    return Member(*identity, topics, message.zone, message.version, features, dict(message.settings))


def members_at(addresses: Collection[str], tls: Tls | None) -> dict[str, Member]:
    """Asks who answers at these internal addresses, all at once, and waits for a second at most.

    Without an answer the address is left out.
    """
    members: dict[str, Member] = {}
    with ExitStack() as stack:
        channels = {each: stack.enter_context(_opened(grpc, each, tls, (_NO_PROXY,))) for each in addresses}
        stubs: dict[str, Any] = {each: ShardServiceStub(channel) for each, channel in channels.items()}
        request = shard.DescribeMemberRequest()
        calls = {each: stub.DescribeMember.future(request, timeout=_ASK_S) for each, stub in stubs.items()}
        for address, call in calls.items():
            with suppress(grpc.RpcError):
                members[address] = member_of(call.result().member)
    return members
