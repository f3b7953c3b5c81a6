"""The members of the group."""

import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from query_service.cluster.membership import Membership
from query_service.cluster.shard_map import Member
from query_service.settings import Settings


class Instance:
    """A member of the group and the last list that it has read."""

    def __init__(self, number: int) -> None:
        self.me = Member(f"query-{number}", f"h:{number}", f"s:{number}", 1)
        self.members: frozenset[Member] = frozenset()

    def learn(self, members: frozenset[Member]) -> None:
        self.members = members


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def join(kafka: str, create_topic: Callable[..., str]) -> Iterator[Callable[[Instance], Membership]]:
    """Makes an instance join the group of the test."""
    topic, group = create_topic("members"), uuid4().hex
    joined: list[Membership] = []

    def start(instance: Instance) -> Membership:
        settings = Settings(kafka_bootstrap=kafka, group_id=group, membership_interval_ms=50)
        membership = Membership(settings, instance.me, frozenset({topic}), instance.learn)
        membership.start()
        joined.append(membership)
        return membership

    yield start
    for each in joined:
        each.stop(10)


@pytest.mark.kafka
@pytest.mark.filterwarnings("ignore:list_groups:DeprecationWarning")  # Membership says why
def test_members_see_each_other_come_and_go(join: Callable[[Instance], Membership]) -> None:
    one, other = Instance(1), Instance(2)
    join(one)
    leaving = join(other)
    until(lambda: one.members == other.members == {one.me, other.me})

    leaving.stop(10)
    left_at = time.monotonic()
    until(lambda: one.members == {one.me})

    assert time.monotonic() - left_at < 5, "a leave must not wait for the session timeout"
