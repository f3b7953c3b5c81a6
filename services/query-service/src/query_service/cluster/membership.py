"""Keeps this instance in the consumer group, and reads from the group who else is."""

import time
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaException
from confluent_kafka.admin import AdminClient

from query_service.cluster.outage import QUIET_CLIENT, Outage
from query_service.cluster.shard_map import Member, newest_of_each

_POLL_S = 0.05
_REQUEST_TIMEOUT_S = 3.0

_log = structlog.get_logger()


class Membership:
    """One thread that is a member of the group from `start` to `leave`.

    The group's own assignment is not used: every member takes no partition, and computes its own from the member list.
    While the broker cannot be asked, the last list stands. A leave shows at once, a death after the session timeout.
    """

    def __init__(
        self,
        bootstrap: str,
        group_id: str,
        me: Member,
        topics: frozenset[str],
        session_timeout_ms: int,
        interval_s: float,
        on_members: Callable[[frozenset[Member]], None],
    ) -> None:
        """`on_members` is called from the thread with each list, changed or not."""
        self._bootstrap = bootstrap
        self._group_id = group_id
        self._me = me
        self._topics = topics
        self._session_timeout_ms = session_timeout_ms
        self._interval_s = interval_s
        self._on_members = on_members
        self._leaving = Event()
        self._outage = Outage("members of the group", bootstrap)
        self._thread = Thread(target=self._run, name="membership", daemon=True)

    def start(self) -> None:
        """Joins the group as soon as the broker answers."""
        self._thread.start()

    def leave(self, timeout_s: float) -> None:
        """Leaves the group, so that the others see it at once. Blocks until it is done or the time is up."""
        self._leaving.set()
        self._thread.join(timeout_s)

    def _run(self) -> None:
        consumer = self._join()
        admin = AdminClient({"bootstrap.servers": self._bootstrap, **QUIET_CLIENT})
        next_read = 0.0
        try:
            while not self._leaving.is_set():
                error = consumer.poll(_POLL_S)
                if error is not None and error.error() is not None:
                    _log.debug("membership", reason=str(error.error()))
                if time.monotonic() >= next_read:
                    next_read = time.monotonic() + self._interval_s
                    self._read_members(admin)
        finally:
            consumer.close()

    def _join(self) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": self._group_id,
                "client.id": self._me.client_id(),
                "session.timeout.ms": self._session_timeout_ms,
                "heartbeat.interval.ms": max(100, self._session_timeout_ms // 6),
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 5000,
                **QUIET_CLIENT,
            }
        )
        consumer.subscribe(sorted(self._topics), on_assign=_take_nothing)
        return consumer

    def _read_members(self, admin: AdminClient) -> None:
        try:
            # Deprecated, but describe_consumer_groups aborts the process when the broker goes away in the middle of
            # it (librdkafka issue 4605); this older call does not.
            groups: list[Any] = admin.list_groups(self._group_id, timeout=_REQUEST_TIMEOUT_S)
        except KafkaException as error:
            self._outage.failed(error)
            return
        self._outage.answered()
        named = [Member.from_client_id(member.client_id) for group in groups for member in group.members]
        self._on_members(newest_of_each(member for member in named if member is not None))


def _take_nothing(consumer: Consumer, _: list[Any]) -> None:
    consumer.assign([])
