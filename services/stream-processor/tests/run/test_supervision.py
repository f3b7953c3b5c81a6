"""The loop that supervises the queries of a run: it follows the directories once the queries have started."""

from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry

from stream_processor.metrics import Metrics, Readiness
from stream_processor.pipeline.fields import Contract
from stream_processor.run import runner
from stream_processor.run.first_loads import FirstLoads
from stream_processor.run.plan import TopicState, plan, topics_of
from stream_processor.run.restarts import Restarts
from stream_processor.run.runner import Runner
from stream_processor.run.starts import Slots, Starts, Waiting
from stream_processor.settings import Settings
from testkit.stream_processor.fakes import FakeQuery
from testkit.stream_processor.micro_batches import PipelineOf

JOIN, TABLE = "invoices-with-store", "stores-by-key"
LOOKS = 5


class Ending:
    """An Event that is set after some waits."""

    def __init__(self) -> None:
        self.waits = 0

    def wait(self, _: float) -> bool:
        self.waits += 1
        return self.waits > LOOKS


class FakeTopics:
    """Topics of one partition, without records."""

    def states(self, names: Iterable[str]) -> dict[str, TopicState]:
        return {name: TopicState(name, 1) for name in names}

    def waiting(self, _: Iterable[str]) -> dict[str, Any]:
        return {}

    ends_of = readable_ends = waiting


class Run:
    """Supervises a new query of invoices-with-store for some looks; `refused` are the tables that are refused."""

    def __init__(self, pipelines: PipelineOf, contract: Contract, refused: Mapping[str, str]) -> None:
        pipeline, topics = pipelines(JOIN), FakeTopics()
        names = topics_of([pipeline])
        plans = [each.at(topics.states(names)) for each in plan([pipeline], dict.fromkeys(names, 1))]
        metrics, self.directory_looks = Metrics(CollectorRegistry()), 0
        self.readiness = Readiness(metrics)
        starts = Starts(
            [Waiting(each, cast(Any, SimpleNamespace(start=lambda: FakeQuery([])))) for each in plans],
            FirstLoads(plans, lambda _: True, lambda _: {}, lambda: refused),
            metrics,
            Restarts(3),
            lambda again: (again, cast(Any, None)),
            lambda _: {},
            lambda: Slots(40, 0),
        )
        limits = SimpleNamespace(check=lambda _: {}, too_many={}, counted=0)
        additions = SimpleNamespace(look=self._look, plans=plans, refused=SimpleNamespace(notes=list))
        checkpoints = SimpleNamespace(check=lambda: None)
        run = Runner(Settings(), contract, metrics, self.readiness, cast(Any, Ending()), lambda _: None)
        parts: tuple[Any, ...] = (starts, dict, plans, topics, limits, checkpoints, additions)
        run._supervise(*parts)

    def _look(self) -> None:
        self.directory_looks += 1


@pytest.fixture(autouse=True)
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    tail = SimpleNamespace(look=lambda names: ({}, {each: [] for each in names}), close=lambda: None)
    monkeypatch.setattr(runner, "SinkTail", lambda _: tail)
    monkeypatch.setattr(runner, "CheckpointedGroup", lambda _: SimpleNamespace(commit=lambda *_: None))


def test_directories_are_followed_while_the_only_query_waits_for_a_table_that_is_refused(
    shipped: PipelineOf, contract: Contract
) -> None:
    run = Run(shipped, contract, {TABLE: TABLE})

    assert (run.readiness.reason, run.readiness.notes) == (
        "no query runs",
        [f"{JOIN} waits for {TABLE}, which stands still"],
    )
    assert run.directory_looks == LOOKS - 1


def test_directories_are_not_followed_while_queries_start(shipped: PipelineOf, contract: Contract) -> None:
    run = Run(shipped, contract, {})

    assert run.readiness.reason == f"starting {JOIN}"
    assert run.directory_looks == 0
