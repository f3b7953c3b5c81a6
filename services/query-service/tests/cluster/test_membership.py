"""The members of the group."""

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
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
from testkit.pytest_plugin import CreateTopic
from testkit.topics import create_topic
from testkit.waiting import wait_until

Join = Callable[..., Membership]


class Instance:
    """A member of the group and the last list that it has read."""

    def __init__(self, number: int) -> None:
        self.me = Member(f"query-{number}", f"h:{number}", f"s:{number}", 1, version=1)
        self.members: frozenset[Member] = frozenset()
        self.lists = 0

    def learn(self, members: frozenset[Member]) -> None:
        self.members = members
        self.lists += 1


class Cluster:
    """The instances that answer when they are asked who they are, by their internal addresses."""

    def __init__(self, *instances: Instance) -> None:
        self.answers: dict[str, Member] = {each.me.shard_address: each.me for each in instances}
        self.asked: list[str] = []

    def ask(self, addresses: Collection[str]) -> dict[str, Member]:
        self.asked.extend(addresses)
        return {each: self.answers[each] for each in addresses if each in self.answers}


def until(condition: Callable[[], bool]) -> None:
    wait_until(condition, "the members do not know each other", timeout_s=60)


@contextmanager
def joining(bootstrap: str, cluster: Cluster, group: str, *topics: str, prefix: str = "") -> Iterator[Join]:
    """Makes instances join a group, which they leave at the end of the block."""
    joined: list[Membership] = []

    def start(instance: Instance) -> Membership:
        settings = Settings(
            kafka_bootstrap=bootstrap, group_id=group, kafka_group_prefix=prefix, membership_interval_ms=50
        )
        membership = Membership(settings, instance.me, frozenset(topics), instance.learn, cluster.ask)
        membership.start()
        joined.append(membership)
        return membership

    yield start
    for each in joined:
        each.stop(10)


def test_members_see_each_other_come_and_go(kafka: str, create_topic: CreateTopic) -> None:
    one, other = Instance(1), Instance(2)
    with joining(kafka, Cluster(one, other), uuid4().hex, create_topic("members")) as join:
        join(one)
        leaving = join(other)
        until(lambda: one.members == other.members == {one.me, other.me})

        leaving.stop(10)
        left_at = time.monotonic()
        until(lambda: one.members == {one.me})

        assert time.monotonic() - left_at < 5, "a leave must not wait for the session timeout"


def test_members_learn_from_each_other_what_the_group_does_not_tell(kafka: str, create_topic: CreateTopic) -> None:
    one, other = Instance(1), Instance(2)
    one.me = replace(one.me, zone="a", topics=(("rows", "rows.g2"),))
    with joining(kafka, Cluster(one, other), uuid4().hex, create_topic("members")) as join:
        join(one)
        join(other)
        until(lambda: one.members == other.members == {one.me, other.me})
        [known] = other.members - {other.me}

    assert known.facts == one.me.facts


def test_a_member_that_has_other_topics_now_is_asked_again(kafka: str, create_topic: CreateTopic) -> None:
    one, other = Instance(1), Instance(2)
    cluster = Cluster(one, other)
    with joining(kafka, cluster, uuid4().hex, create_topic("members")) as join:
        changing = join(one)
        join(other)
        until(lambda: one.members == other.members == {one.me, other.me})
        more = replace(one.me, topics=(("rows", "rows.g2"),))
        cluster.answers[more.shard_address] = changing.me = more

        until(lambda: more.facts in [each.facts for each in other.members])


def test_one_that_is_listed_and_does_not_answer_is_no_member_until_it_does(
    kafka: str, create_topic: CreateTopic
) -> None:
    one, mute = Instance(1), Instance(2)
    cluster = Cluster(one)
    with joining(kafka, cluster, uuid4().hex, create_topic("members")) as join:
        join(mute)
        until(lambda: mute.me in mute.members)
        join(one)
        until(lambda: one.members == {one.me} and mute.me.shard_address in cluster.asked)
        cluster.answers[mute.me.shard_address] = mute.me

        until(lambda: one.members == {one.me, mute.me})


def test_a_stable_group_is_not_read(kafka: str, create_topic: CreateTopic) -> None:
    one, other, unsettled, mute = map(Instance, range(1, 5))
    topic = create_topic("members")
    stable, changing = Cluster(one, other), Cluster(unsettled)
    with (
        joining(kafka, changing, uuid4().hex, topic) as join_changing,
        joining(kafka, stable, uuid4().hex, topic) as join,
    ):
        join_changing(mute)
        join_changing(unsettled)
        resting = join(one)
        until(lambda: resting.is_settled and unsettled.me in unsettled.members)
        lists, then = one.lists, unsettled.lists
        until(lambda: unsettled.lists >= then + 10)

        assert one.lists == lists
        join(other)
        until(lambda: one.members == {one.me, other.me})


def test_the_group_is_joined_though_a_topic_is_missing(kafka: str, create_topic: CreateTopic) -> None:
    one = Instance(1)
    topics = "0-is-not-there", create_topic("members")
    with joining(kafka, Cluster(one), uuid4().hex, *topics) as join:
        join(one)

        until(lambda: one.members == {one.me})


@pytest.mark.parametrize(("answer", "refused"), [("query-1", True), ("query-2", False), (None, False)])
def test_the_later_of_two_under_one_name_does_not_join_if_the_other_lives(
    kafka: str, create_topic: CreateTopic, answer: str | None, *, refused: bool
) -> None:
    one, later = Instance(1), Instance(1)
    later.me = Member("query-1", "h:9", "s:9", 2, version=1)
    cluster = Cluster(one)
    with joining(kafka, cluster, uuid4().hex, create_topic("members")) as join:
        first = join(one)
        until(lambda: one.members == {one.me})
        cluster.answers = {"s:1": replace(one.me, instance=answer)} if answer else {}
        cluster.answers["s:9"] = later.me
        second = join(later)
        until(lambda: second.refusal is not None if refused else later.members == {later.me})

        assert first.refusal is None
        if refused:
            assert "QUERY_SERVICE_INSTANCE=query-1" in str(second.refusal)
            assert "h:1" in str(second.refusal)
            assert one.members == {one.me}


def test_of_two_that_start_at_once_under_one_name_the_later_leaves(kafka: str, create_topic: CreateTopic) -> None:
    one, later = Instance(1), Instance(1)
    later.me = Member("query-1", "h:9", "s:9", 2, version=1)
    cluster = Cluster(later)
    with joining(kafka, cluster, uuid4().hex, create_topic("members")) as join:
        join(one)
        second = join(later)
        until(lambda: later.members == {later.me})
        cluster.answers["s:1"] = one.me

        until(lambda: second.refusal is not None and one.members == {one.me})


def test_members_meet_in_the_group_with_the_prefix(kafka: str, create_topic: CreateTopic) -> None:
    one, group, admin = Instance(1), uuid4().hex, AdminClient({"bootstrap.servers": kafka})
    with joining(kafka, Cluster(one), group, create_topic("members"), prefix="acme.") as join:
        join(one)
        until(lambda: one.members == {one.me})
        groups = admin.list_consumer_groups().result()

    assert [each.group_id for each in groups.valid if group in each.group_id] == [f"acme.{group}"]


def test_members_are_read_through_one_client(
    kafka: str, create_topic: CreateTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[type] = []

    def counting(client: type, *options: Any) -> Any:
        made.append(client)
        return connect(client, *options)

    monkeypatch.setattr("query_service.cluster.membership.connect", counting)
    one, cluster = Instance(1), Cluster(*map(Instance, range(1, 5)))
    with joining(kafka, cluster, uuid4().hex, create_topic("members")) as join:
        join(one)
        until(lambda: one.members == {one.me})
        made.clear()
        for number in range(2, 5):
            other = Instance(number)
            join(other)
            until(lambda other=other: other.me in one.members)  # type: ignore[misc]

    assert made.count(AdminClient) == 3, "one for each that has joined"


def test_a_broker_that_is_silent_hides_no_member_unless_it_coordinates_the_group(tmp_path: Path) -> None:
    one, other = Instance(1), Instance(2)
    never_ms = "600000"
    with running_brokers(tmp_path, 2, broker_session_timeout_ms=never_ms) as cluster:
        create_topic(cluster.bootstrap, "members", 1)
        with joining(cluster.bootstrap, Cluster(one, other), "group", "members") as join:
            join(one)
            until(lambda: one.members == {one.me})
            coordinator = cluster.coordinator("group")
            silent = next(broker for node, broker in cluster.brokers.items() if node != coordinator)

            silent.pause()
            join(other)

            until(lambda: one.members == other.members == {one.me, other.me})
            silent.resume()
