"""The members of the group."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient

from query_service.cluster.membership import Membership
from query_service.cluster.shard_map import Member
from query_service.settings import Settings
from statecast_service.kafka import connect
from testkit.broker import running_brokers
from testkit.topics import create_topic
from testkit.waiting import wait_until

Join = Callable[["Instance"], Membership]


class Instance:
    """A member of the group and the last list that it has read."""

    def __init__(self, number: int) -> None:
        self.me = Member(f"query-{number}", f"h:{number}", f"s:{number}", 1)
        self.members: frozenset[Member] = frozenset()
        self.living: dict[str, str] = {}

    def learn(self, members: frozenset[Member]) -> None:
        self.members = members

    def name_at(self, shard_address: str) -> str | None:
        return self.living.get(shard_address)


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, "the members do not know each other", timeout_s=60)


@contextmanager
def joining(bootstrap: str, topic: str, group: str, prefix: str = "") -> Iterator[Join]:
    """Makes instances join a group, which they leave at the end of the block."""
    joined: list[Membership] = []

    def start(instance: Instance) -> Membership:
        settings = Settings(
            kafka_bootstrap=bootstrap, group_id=group, kafka_group_prefix=prefix, membership_interval_ms=50
        )
        membership = Membership(settings, instance.me, frozenset({topic}), instance.learn, instance.name_at)
        membership.start()
        joined.append(membership)
        return membership

    yield start
    for each in joined:
        each.stop(10)


@pytest.mark.kafka
def test_members_see_each_other_come_and_go(kafka: str, create_topic: Callable[..., str]) -> None:
    one, other = Instance(1), Instance(2)
    with joining(kafka, create_topic("members"), uuid4().hex) as join:
        join(one)
        leaving = join(other)
        until(lambda: one.members == other.members == {one.me, other.me})

        leaving.stop(10)
        left_at = time.monotonic()
        until(lambda: one.members == {one.me})

        assert time.monotonic() - left_at < 5, "a leave must not wait for the session timeout"


@pytest.mark.kafka
@pytest.mark.parametrize(("answer", "refused"), [("query-1", True), ("query-2", False), (None, False)])
def test_the_later_of_two_under_one_name_does_not_join_if_the_other_lives(
    kafka: str, create_topic: Callable[..., str], answer: str | None, *, refused: bool
) -> None:
    one, later = Instance(1), Instance(1)
    later.me = Member("query-1", "h:9", "s:9", 2)
    later.living = {"s:1": answer} if answer else {}
    with joining(kafka, create_topic("members"), uuid4().hex) as join:
        first = join(one)
        until(lambda: one.members == {one.me})
        second = join(later)
        until(lambda: second.refusal is not None if refused else later.members == {later.me})

        assert first.refusal is None
        if refused:
            assert "QUERY_SERVICE_INSTANCE=query-1" in str(second.refusal)
            assert "h:1" in str(second.refusal)
            assert one.members == {one.me}


@pytest.mark.kafka
def test_of_two_that_start_at_once_under_one_name_the_later_leaves(
    kafka: str, create_topic: Callable[..., str]
) -> None:
    one, later = Instance(1), Instance(1)
    later.me = Member("query-1", "h:9", "s:9", 2)
    with joining(kafka, create_topic("members"), uuid4().hex) as join:
        join(one)
        second = join(later)
        until(lambda: later.members == {later.me})
        later.living = {"s:1": "query-1"}

        until(lambda: second.refusal is not None and one.members == {one.me})


@pytest.mark.kafka
def test_members_meet_in_the_group_with_the_prefix(kafka: str, create_topic: Callable[..., str]) -> None:
    one, group, admin = Instance(1), uuid4().hex, AdminClient({"bootstrap.servers": kafka})
    with joining(kafka, create_topic("members"), group, "acme.") as join:
        join(one)
        until(lambda: one.members == {one.me})
        groups = admin.list_consumer_groups().result()

    assert [each.group_id for each in groups.valid if group in each.group_id] == [f"acme.{group}"]


@pytest.mark.kafka
def test_members_are_read_through_one_client(
    kafka: str, create_topic: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[type] = []

    def counting(client: type, *options: Any) -> Any:
        made.append(client)
        return connect(client, *options)

    monkeypatch.setattr("query_service.cluster.membership.connect", counting)
    one = Instance(1)
    with joining(kafka, create_topic("members"), uuid4().hex) as join:
        join(one)
        until(lambda: one.members == {one.me})
        made.clear()
        for _ in range(3):
            one.members = frozenset()
            until(lambda: one.members == {one.me})

    assert AdminClient not in made


def test_a_broker_that_is_silent_hides_no_member_unless_it_coordinates_the_group(tmp_path: Path) -> None:
    one, other = Instance(1), Instance(2)
    never_ms = "600000"
    with running_brokers(tmp_path, 2, broker_session_timeout_ms=never_ms) as cluster:
        create_topic(cluster.bootstrap, "members", 1)
        with joining(cluster.bootstrap, "members", "group") as join:
            join(one)
            until(lambda: one.members == {one.me})
            coordinator = cluster.coordinator("group")
            silent = next(broker for node, broker in cluster.brokers.items() if node != coordinator)

            silent.pause()
            join(other)

            until(lambda: one.members == other.members == {one.me, other.me})
            silent.resume()
