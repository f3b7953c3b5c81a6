"""The waiting for broker and topics."""

import pytest

from cdc_simulator.readiness import Readiness
from cdc_simulator.testing import ManualClock, MemoryProducer
from cdc_simulator.topic_wait import wait_for_topics


class ChangingClock(ManualClock):
    """Lets the world change with the n-th sleep."""

    def __init__(self, producer: MemoryProducer, worlds: list[dict[str, object] | None]) -> None:
        super().__init__()
        self.producer = producer
        self.worlds = worlds
        self.reasons: list[str | None] = []
        self.readiness = Readiness("starting")

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.reasons.append(self.readiness.reason)
        self.producer.topics = self.worlds.pop(0)


def wait(clock: ChangingClock, stopping: bool = False) -> bool:
    return wait_for_topics(
        clock.producer, ["matches", "markets"], "broker:9092", clock.readiness, clock, lambda: stopping
    )


def test_it_waits_for_the_broker_then_for_each_topic_and_says_for_which() -> None:
    producer = MemoryProducer({})
    producer.topics = None
    clock = ChangingClock(producer, [None, {"matches": 1}, {"matches": 1, "markets": 1}])
    came = wait(clock)

    assert came
    assert clock.reasons == [
        "no broker answers at broker:9092",
        "no broker answers at broker:9092",
        "topic markets does not exist at broker:9092: run kafka-topics infra/kafka/topics.yaml",
    ]


def test_the_reason_is_logged_once_and_again_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    producer = MemoryProducer({})
    producer.topics = None
    wait(ChangingClock(producer, [*[None] * 60, {"matches": 1, "markets": 1}]))

    assert capsys.readouterr().out.count("no broker answers") == 2


def test_it_gives_up_when_it_is_told_to_stop() -> None:
    producer = MemoryProducer({})
    producer.topics = None

    assert not wait(ChangingClock(producer, []), stopping=True)
