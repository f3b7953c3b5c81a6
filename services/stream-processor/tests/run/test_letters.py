"""Dead letters as a real broker returns them, and their limit."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import pytest
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from statecast_service.kafka import KafkaSettings
from stream_processor.metrics import Metrics
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run import letters as module
from stream_processor.run.checkpoints import Checkpoints, LocalFiles
from stream_processor.run.letters import CountedChanges, DeadLetter, DeadLetterLimits, read_dead_letters
from stream_processor.run.topics import Topics
from stream_processor.steps.dead_letters import OFFSET, PARTITION, PIPELINES
from stream_processor.steps.dead_letters import TOPIC as TOPIC_HEADER
from testkit.pytest_plugin import CreateTopic
from testkit.stream_processor.micro_batches import PipelineOf
from testkit.stream_processor.process import wait_until

TOPIC = "orders.dead-letter"
BY_KEY, BY_ITEM = "orders-by-key", "orders-by-item"


@dataclass
class FakeLetters:
    """A dead-letter topic with one partition."""

    letters: list[DeadLetter] = field(default_factory=list)

    def add(self, *origins: int, pipelines: str) -> None:
        """Adds letters of the records at these offsets of `orders`."""
        for each in origins:
            values = {TOPIC_HEADER: "orders", PARTITION: "0", OFFSET: str(each), PIPELINES: pipelines}
            headers = tuple((name, value.encode()) for name, value in values.items())
            self.letters.append(DeadLetter(0, len(self.letters), b"key", b"value", headers))

    def ends(self, topics: Iterable[str]) -> dict[str, dict[int, int]]:
        """Returns the end of the only partition."""
        assert list(topics) == [TOPIC]
        return {TOPIC: {0: len(self.letters)}}

    def read(self, topic: str, starts: Mapping[int, int]) -> list[DeadLetter]:
        """Returns the letters from there on."""
        assert topic == TOPIC
        return self.letters[starts.get(0, 0) :]


class Count:
    """The letters of two pipelines and their limits, as of a process that is started again by `begin`."""

    def __init__(self, directory: Path, pipelines: list[Pipeline]) -> None:
        self.topic, self._directory, self._pipelines = FakeLetters(), directory, pipelines
        self.metrics = Metrics(CollectorRegistry())
        self.limits = self.begin()

    def begin(self, notes: str = "notes", stopping: Callable[[], bool] = lambda: False) -> DeadLetterLimits:
        """Makes the limits as another process would, with notes at this place."""
        (self._directory / notes).mkdir(exist_ok=True)
        checkpoints = Checkpoints(str(self._directory / notes), LocalFiles())
        return DeadLetterLimits(self._pipelines, self.topic.ends, self.topic.read, checkpoints, stopping)

    def check(self, limits: DeadLetterLimits | None = None) -> dict[str, str]:
        """Checks the limits, by default those of the process that began."""
        return (limits or self.limits).check(self.metrics)

    @property
    def counted(self) -> float | None:
        """The letters that count, by the metric."""
        return self.metrics.registry.get_sample_value("stream_processor_dead_letters", {"topic": TOPIC})


@pytest.fixture
def count(tmp_path: Path, shipped: PipelineOf) -> Count:
    return Count(tmp_path, [shipped(BY_KEY), shipped(BY_ITEM, dead_letters={"limit": 5})])


def test_those_from_before_the_first_start_do_not_count(count: Count) -> None:
    count.topic.add(*range(100), pipelines=BY_ITEM)

    assert count.check(count.begin()) == {}
    assert count.counted == 0


def test_the_count_of_the_last_release_goes_on(count: Count, tmp_path: Path) -> None:
    """If this fails, letters that 0.3.0 has counted against the limit are forgotten (docs/compatibility.md)."""
    count.topic.add(1, 2, 3, pipelines=BY_ITEM)
    count.begin()
    (tmp_path / "notes" / f"{TOPIC}.accepted.json").write_text('{"ends": {"0": 1}}')

    assert count.check(count.begin()) == {}
    assert count.counted == 2


def test_a_join_counts_the_letters_of_each_of_its_tables(tmp_path: Path, shipped: PipelineOf) -> None:
    limits = DeadLetterLimits(
        [shipped("stores-with-sales")], lambda _: {}, lambda *_: [], Checkpoints(str(tmp_path), LocalFiles())
    )

    assert limits.by_topic == {
        "stores-by-key.dead-letter": {"stores-with-sales": 1000},
        "sales-by-store.dead-letter": {"stores-with-sales": 1000},
    }


def test_each_pipeline_has_a_limit_of_its_own_which_holds_over_a_restart(count: Count) -> None:
    count.check(count.begin())
    count.topic.add(*range(100), pipelines=BY_KEY)
    count.topic.add(*range(5), pipelines=f"{BY_KEY},{BY_ITEM}")

    assert count.check() == {}

    count.topic.add(200, pipelines=BY_ITEM)

    for each in (count.limits, count.begin()):
        too_many = count.check(each)
        assert list(too_many) == [BY_ITEM]
        assert too_many[BY_ITEM].startswith(f"6 dead letters on {TOPIC}, the limit is 5 of {BY_ITEM}: ")
    assert count.counted == 101


def test_a_change_counts_once_however_often_it_is_set_aside(count: Count) -> None:
    count.check()
    for _ in range(10):
        count.topic.add(*range(5), pipelines=BY_ITEM)

    assert count.check() == count.check(count.begin()) == {}


def test_another_generation_may_find_all_that_was_set_aside_before(count: Count) -> None:
    count.topic.add(*range(100), pipelines=BY_ITEM)
    count.limits = count.begin("of the next generation")
    count.check()
    count.topic.add(*range(100), pipelines=f"{BY_ITEM},{BY_KEY}")

    assert count.check() == {}

    count.topic.add(*range(100, 106), pipelines=BY_ITEM)

    assert list(count.check()) == [BY_ITEM]


def test_what_only_other_pipelines_cannot_use_does_not_count(count: Count) -> None:
    count.check()
    count.topic.add(*range(2_000), pipelines="orders-by-item.g2")

    assert count.check() == {}


@pytest.mark.parametrize(
    "garbled",
    [{PIPELINES: b"\xff\xfe"}, {PIPELINES: b""}, {PIPELINES: None}, {PARTITION: b"first"}, {TOPIC_HEADER: b"\xc3("}],
)
def test_one_with_headers_that_cannot_be_read_counts_against_no_limit_and_is_logged(
    count: Count, garbled: dict[str, bytes | None]
) -> None:
    count.check()
    count.topic.add(*range(6), pipelines="orders-by-item.g2")
    count.topic.letters = [
        replace(each, headers=tuple({**dict(each.headers), **garbled}.items())) for each in count.topic.letters
    ]

    with capture_logs() as events:
        assert count.check() == {}

    assert count.counted == 6
    assert [(each["topic"], each["letters"]) for each in events] == [(TOPIC, 6)]
    with capture_logs() as events:
        count.check()
    assert events == []


def test_accepted_ones_no_longer_count(count: Count) -> None:
    count.check()
    count.topic.add(*range(6), pipelines=BY_ITEM)

    assert list(count.check()) == [BY_ITEM]

    count.begin().accept(TOPIC)

    assert count.check() == count.check(count.begin()) == {}


def test_a_topic_that_was_made_anew_counts_from_its_beginning(count: Count) -> None:
    count.topic.add(*range(100), pipelines=BY_ITEM)
    count.check()
    count.topic.letters.clear()
    count.topic.add(*range(6), pipelines=BY_ITEM)

    assert list(count.check()) == list(count.check(count.begin())) == [BY_ITEM]

    # Also when it has more letters than the one before had.
    count.topic.add(*range(6, 200), pipelines=BY_ITEM)

    assert list(count.check()) == list(count.check(count.begin())) == [BY_ITEM]


def test_a_topic_that_was_made_anew_is_known_by_an_end_that_goes_back(count: Count) -> None:
    count.check()
    count.topic.add(*range(20), pipelines=BY_KEY)
    count.limits.accept(TOPIC)
    count.topic.add(*range(20, 30), pipelines=BY_KEY)
    count.check()
    count.topic.letters.clear()
    count.topic.add(*range(25), pipelines=BY_ITEM)

    assert count.check()[BY_ITEM].startswith("25 dead letters")
    assert count.check(count.begin())[BY_ITEM].startswith("25 dead letters")


def test_what_comes_beyond_the_limit_is_a_number_alone() -> None:
    count = CountedChanges(limit=5)
    for offset in [*range(100), *range(6)]:
        count.add(("orders", 0, offset))

    assert (len(count), len(count.changes)) == (100, 6)


def test_what_is_remembered_from_before_the_count_is_bounded(count: Count, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_KNOWN", 10)
    count.topic.add(*range(100), pipelines=BY_ITEM)
    count.check()
    count.topic.add(*range(90, 100), pipelines=BY_ITEM)
    assert count.check() == {}
    count.topic.add(*range(6), pipelines=BY_ITEM)

    assert count.check()[BY_ITEM].startswith("6 dead letters")


def test_a_stop_ends_the_count_which_goes_on_from_there(count: Count) -> None:
    count.check(count.begin())
    count.topic.add(*range(6), pipelines=BY_ITEM)
    stopping = Event()
    count.limits = count.begin(stopping=stopping.is_set)
    stopping.set()

    assert count.check() == {}
    assert count.counted == 0

    stopping.clear()

    assert count.check()[BY_ITEM].startswith("6 dead letters")


def test_all_partitions_are_read_to_their_ends(brokers: KafkaSettings, kafka: str, create_topic: CreateTopic) -> None:
    topic = create_topic("letters", partitions=3)
    producer = Producer({"bootstrap.servers": kafka})
    for value, partition in ((b"a", 0), (b"b", 0), (None, 2)):
        producer.produce(topic, value, b"key", partition, headers=[("statecast-reason", b"why")])
    producer.flush()

    letters = list(read_dead_letters(brokers, topic, {0: 1}))

    assert sorted((each.partition, each.offset, each.value) for each in letters) == [(0, 1, b"b"), (2, 0, None)]
    assert {(each.key, each.reason, each.origin) for each in letters} == {(b"key", "why", None)}


def test_an_empty_topic_has_no_letters(brokers: KafkaSettings, create_topic: CreateTopic) -> None:
    assert list(read_dead_letters(brokers, create_topic("letters", partitions=1), {})) == []


def test_a_topic_says_how_large_a_record_it_takes(brokers: KafkaSettings, create_topic: CreateTopic) -> None:
    plain, large = create_topic("plain"), create_topic("large", max_message_bytes="6000000")
    topics = Topics(brokers)
    wait_until(lambda: topics.missing({plain: [], large: []}) is None, lambda: "the topics do not appear")

    assert topics.config([plain, large], "max.message.bytes") == {plain: "1048588", large: "6000000"}


def test_a_damaged_note_stops_the_pipelines_of_its_topic_until_letters_are_accepted(
    count: Count, tmp_path: Path
) -> None:
    count.check()
    [note] = tmp_path.rglob(f"{TOPIC}.accepted.json")
    note.write_text("{")

    stopped = count.check()
    assert stopped.keys() == {BY_KEY, BY_ITEM}
    assert f"{TOPIC}.accepted.json is not JSON" in stopped[BY_KEY]
    assert "accept-dead-letters" in stopped[BY_KEY]

    count.limits.accept(TOPIC)
    assert count.check() == {}
