"""Members understand the forms of the last release, and the fields that they know of a newer one."""

from query_service.cluster.shard_map import Member
from query_service.server.shard_channel import FEATURES, member_of, message_of
from statecast.shard.v1 import shard_service_pb2 as shard

IDENTITY = ("query-1", "q1:50051", "q1:50061", 1_764_000_000_000)
MEMBER = Member(*IDENTITY, (("rows", "rows.g2"),), "a", 1, FEATURES, {"REPLICAS": "3"})
UNKNOWN = b"\xfa\x07\x04more"
"""Field 127, which only a newer build knows."""


def test_client_ids_are_those_of_the_last_release() -> None:
    """If this fails, instances of two releases do not see each other (docs/compatibility.md)."""
    assert MEMBER.client_id == "query-1|q1:50051|q1:50061|1764000000000|=000cb55f"
    assert Member.from_client_id(MEMBER.client_id) == MEMBER


def test_the_facts_of_a_newer_member_are_taken_as_far_as_they_are_known() -> None:
    newer = message_of(MEMBER)
    newer.version = 9
    newer.features.append(99)  # type: ignore[arg-type]  # a feature of a later release
    received = shard.Member.FromString(newer.SerializeToString() + UNKNOWN)
    member = member_of(received)

    assert member == MEMBER
    assert member.facts == (MEMBER.topics, "a", 9, FEATURES, {"REPLICAS": "3"})


def test_a_member_of_0_2_0_has_the_features_of_that_release() -> None:
    """If this fails, windows over many groups fail while 0.2.0 is upgraded."""
    facts = b'\x08\x01\x12\x07query-1\x1a\x08q1:50051"\x08q1:50061(\x80\xd0\xdf\xb4\xab32\x01a'
    member = member_of(shard.Member.FromString(facts))

    assert member == MEMBER
    assert member.features == {"FEATURE_GROUP_WINDOWS"}
