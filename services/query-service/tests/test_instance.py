"""An instance as a whole, without a broker."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from query_service.cluster.broker_thread import BrokerThread
from query_service.cluster.membership import Membership
from query_service.cluster.topic_watch import TopicWatch
from query_service.instance import Instance
from query_service.settings import Settings
from testkit.ports import free_ports
from testkit.query_service import store_definition


@pytest.mark.parametrize("part", [Membership, TopicWatch])
async def test_an_instance_stops_when_one_of_its_threads_has_ended(
    part: type[BrokerThread], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else it would answer for ever by the members, topics and ends of then."""
    monkeypatch.setattr(part, "run", lambda _: None)
    port, shard_port, metrics_port = free_ports(3)
    settings = Settings(
        kafka_bootstrap="127.0.0.1:1",
        port=port,
        shard_port=shard_port,
        metrics_port=metrics_port,
        data_directory=tmp_path,
    )
    instance = Instance(settings, [store_definition()])
    with capture_logs() as logs:
        went_on = await asyncio.wait_for(instance.run(asyncio.Event()), 30)

    assert not went_on
    [event] = [log for log in logs if log["log_level"] == "error"]
    assert event["ended"] == [{Membership: "membership", TopicWatch: "topic-watch"}[part]]
