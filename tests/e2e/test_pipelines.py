"""Every pipeline that ships leaves on its topic what a plain model makes of the same change log."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from drivers.domain_run import DomainRun
from drivers.keyed_topic import materialize
from drivers.model_keys import canonical
from drivers.models import MODELS
from drivers.topic import read_topic
from drivers.waiting import eventually
from google.protobuf.message import Message

CHANGES = 10_000
RATE = 1_000


@dataclass(frozen=True)
class Domain:
    """A domain whose source has come to rest while its pipelines still run."""

    bootstrap: str

    def expected(self, pipeline: str) -> Any:
        """What the pipeline's model makes of all that the source has published, repetitions included."""
        model = MODELS[pipeline]
        return model.expected(
            [
                message.FromString(record.value or b"")
                for topic, message in model.sources.items()
                for record in read_topic(self.bootstrap, topic)
            ]
        )


@pytest.fixture(scope="module")
def domain(request: pytest.FixtureRequest, kafka: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Domain]:
    """One domain after tens of thousands of changes, which its pipelines have followed in real-time mode."""
    name = str(request.param)
    pipelines = [pipeline for pipeline, model in MODELS.items() if model.domain == name]
    run = DomainRun(tmp_path_factory.mktemp(name), kafka, name, pipelines)
    run.create_topics()
    try:
        run.start_processor()
        run.change(CHANGES, RATE)
        yield Domain(kafka)
    finally:
        run.stop()


PIPELINES = pytest.mark.parametrize(
    ("domain", "pipeline"), [(model.domain, name) for name, model in MODELS.items()], indirect=["domain"]
)


@PIPELINES
@pytest.mark.timeout(900)
def test_a_pipeline_leaves_what_its_model_expects(domain: Domain, pipeline: str) -> None:
    expected = domain.expected(pipeline)
    assert expected, "the workload never comes to what the pipeline is for"
    check = _plain_topic_holds if isinstance(expected, Counter) else _keyed_topic_holds

    eventually(lambda: check(domain.bootstrap, pipeline, expected), timeout_s=240)


def _plain_topic_holds(bootstrap: str, topic: str, expected: Counter[bytes]) -> None:
    values = Counter(record.value for record in read_topic(bootstrap, topic))
    assert values.total() == expected.total()
    assert values == expected


def _keyed_topic_holds(bootstrap: str, topic: str, expected: dict[str, Message | list[Message]]) -> None:
    found = materialize(read_topic(bootstrap, topic))
    torn = [group for group, partitions in found.partitions.items() if len(partitions) > 1]
    assert torn == [], "a group stands on one partition"
    assert found.live.keys() == expected.keys()
    wrong = [key for key, payload in found.live.items() if payload not in _choices(expected[key])]
    assert wrong == [], f"{len(wrong)} of {len(expected)} rows differ"


def _choices(expected: Message | list[Message]) -> set[bytes]:
    """The encoded rows of which any may stand under a key."""
    return {canonical(each) for each in (expected if isinstance(expected, list) else [expected])}
