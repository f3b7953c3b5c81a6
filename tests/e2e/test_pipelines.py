"""Every pipeline that ships leaves on its topic what a plain model makes of the same change log."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from drivers.domain_run import DomainRun
from drivers.pipeline_models import MODELS, canonical
from drivers.topic_readers import materialize
from google.protobuf.message import Message

from testkit.topics import read_topic
from testkit.waiting import eventually

CHANGES = 10_000
RATE = 1_000


class Domains:
    """Runs one domain at a time, each once: its source makes all its changes and rests, its pipelines go on."""

    def __init__(self, directory: Path, bootstrap: str) -> None:
        self._directory = directory
        self._bootstrap = bootstrap
        self._name = ""
        self._run: DomainRun | None = None

    def play(self, name: str) -> None:
        """Returns when all changes of the domain are in Kafka, and its pipelines run in real-time mode."""
        if name == self._name:
            return
        self.stop()
        directory = self._directory / name
        directory.mkdir()
        pipelines = [pipeline for pipeline, model in MODELS.items() if model.domain == name]
        self._run, self._name = DomainRun(directory, self._bootstrap, name, pipelines), name
        self._run.create_topics()
        self._run.start_processor()
        self._run.change(CHANGES, RATE)

    def stop(self) -> None:
        """Ends what runs."""
        if self._run is not None:
            self._run.stop()


@pytest.fixture(scope="module")
def domains(kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domains]:
    """The domains on the broker of the run."""
    playing = Domains(tmp_path_factory.mktemp("domains"), kafka)
    try:
        yield playing
    finally:
        playing.stop()


@pytest.mark.parametrize("pipeline", MODELS)
@pytest.mark.timeout(900)
def test_a_pipeline_leaves_what_its_model_expects(domains: Domains, kafka: str, pipeline: str) -> None:
    domains.play(MODELS[pipeline].domain)
    expected = _expected(kafka, pipeline)
    assert expected, "the workload never comes to what the pipeline is for"
    check = _plain_topic_holds if isinstance(expected, Counter) else _keyed_topic_holds

    eventually(lambda: check(kafka, pipeline, expected), timeout_s=240)


def _expected(bootstrap: str, pipeline: str) -> Any:
    """What the pipeline's model makes of all that the source has published, repetitions included."""
    model = MODELS[pipeline]
    return model.expected(
        [
            message.FromString(record.value or b"")
            for topic, message in model.sources.items()
            for record in read_topic(bootstrap, topic)
        ]
    )


def _plain_topic_holds(bootstrap: str, topic: str, expected: Counter[bytes]) -> None:
    values = Counter(_told(topic, record.value or b"") for record in read_topic(bootstrap, topic))
    assert values.total() == expected.total()
    assert values == expected


def _told(topic: str, value: bytes) -> bytes:
    """The value without its running total, which must be there."""
    if (running := MODELS[topic].running) is None:
        return value
    message, field = running
    told: Any = message.FromString(value)
    assert getattr(told, field) >= told.earned_points
    told.ClearField(field)
    return canonical(told)


def _keyed_topic_holds(bootstrap: str, topic: str, expected: dict[str, Message | list[Message]]) -> None:
    keyed_topic = materialize(read_topic(bootstrap, topic))
    torn = [group for group, partitions in keyed_topic.partitions.items() if len(partitions) > 1]
    assert torn == [], "a group stands on one partition"
    assert keyed_topic.live.keys() == expected.keys()
    wrong = [key for key, payload in keyed_topic.live.items() if payload not in _choices(expected[key])]
    assert wrong == [], f"{len(wrong)} of {len(expected)} rows differ"


def _choices(expected: Message | list[Message]) -> set[bytes]:
    """The encoded rows of which any may stand under a key."""
    return {canonical(each) for each in (expected if isinstance(expected, list) else [expected])}
