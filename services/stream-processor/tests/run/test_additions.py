"""Pipelines with files that come into a directory while others run."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from stream_processor import shapes
from stream_processor.metrics import Metrics
from stream_processor.pipeline.fields import Contract
from stream_processor.run.additions import Additions, PipelineDirectories
from stream_processor.run.admission import RefusedFiles
from stream_processor.run.checkpoints import Checkpoints, LocalFiles
from stream_processor.run.first_loads import FirstLoads
from stream_processor.run.letters import DeadLetterLimits
from stream_processor.run.plan import TopicState, plan, slots_needed, topics_of
from stream_processor.run.restarts import MAX_PAUSE_S, Restarts
from stream_processor.run.starts import Slots, Starts, Waiting
from stream_processor.settings import Settings
from testkit.repository_files import DOMAINS
from testkit.stream_processor.fakes import FakeQuery

ORDERS = DOMAINS / "orders"
SLOTS = 40


class FakeTopics:
    """Topics of four partitions; those in `absent` are not there."""

    absent: frozenset[str] = frozenset()

    def missing(self, access: Mapping[str, Iterable[str]]) -> str | None:
        gone = sorted(self.absent & set(access))
        return f"no topic {', '.join(gone)}" if gone else None

    def states(self, names: Iterable[str]) -> dict[str, TopicState]:
        return {name: TopicState(name, 4) for name in names}

    def config(self, names: Iterable[str], key: str) -> dict[str, str]:
        return {name: {"cleanup.policy": "delete"}.get(key, "4000000") for name in names}

    def readable_ends(self, name: str) -> dict[int, int]:
        return {}

    def starts(self, name: str, starting_offsets: str) -> dict[int, int] | None:
        return None

    def highest_epoch(self, name: str, last_only: bool) -> int:
        return 0


class Prepared:
    """A query that starts as a fake, which ends at once if there is an error."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def start(self) -> Any:
        return FakeQuery([], self._error)


class Run:
    """A run of orders-by-key on a directory; `look` makes one look of the run."""

    def __init__(self, root: Path, contract: Contract) -> None:
        self.directory = root / "pipelines"
        self.directory.mkdir()
        first = self.copy("orders-by-key")
        pipelines = [shapes.read(first, contract)]
        plans = plan(pipelines, dict.fromkeys(topics_of(pipelines), 4))
        self.registry = CollectorRegistry()
        self.topics, self.metrics, self.settings = FakeTopics(), Metrics(self.registry), Settings()
        self.slots, self.error = SLOTS, cast(Exception | None, None)
        checkpoints = Checkpoints(str(root / "checkpoints"), LocalFiles())
        limits = DeadLetterLimits(pipelines, lambda _: {}, lambda *_: [], checkpoints)
        self.refused_files = RefusedFiles(self.metrics)
        loads = FirstLoads(plans, lambda _: False, lambda _: {}, self.refused_files.tables)
        waiting = [Waiting(each, cast(Any, Prepared(None))) for each in plans]
        self.now = 0.0
        self.starts = Starts(
            waiting,
            loads,
            self.metrics,
            Restarts(2),
            lambda again: (again, cast(Any, Prepared(self.error))),
            lambda _: {},
            lambda: Slots(self.slots, 0),
            clock=lambda: self.now,
        )
        self.additions = Additions(
            PipelineDirectories([self.directory], [first], self.settings),
            self.refused_files,
            list(plans),
            self.starts,
            cast(Any, self.topics),
            limits,
            checkpoints,
            self.settings,
            self.metrics,
            lambda: self.slots,
            lambda *_: cast(Any, Prepared(self.error)),
        )
        self.look()

    def copy(self, name: str, /, **replaced: object) -> Path:
        content = yaml.safe_load((ORDERS / f"{name}.yaml").read_text())
        file = self.directory / f"{name}.yaml"
        file.write_text(yaml.safe_dump({**content, **replaced}))
        return file

    def look(self) -> list[str]:
        """Looks until the files in the directory have settled; returns the errors and warnings that were logged."""
        with capture_logs() as logs:
            for _ in range(3):
                self.now += MAX_PAUSE_S
                self.additions.look()
                self.starts.take_failed()
                self.starts.start()
            self.starts.take_failed()
        return [f"{each['event']} {each.get('reason', '')}" for each in logs if each["log_level"] != "info"]

    @property
    def running(self) -> set[str]:
        return {each.plan.name for each in self.starts.running}

    def up(self, name: str) -> float | None:
        return self.registry.get_sample_value("stream_processor_query_up", {"query": name})

    @property
    def slots_needed(self) -> float | None:
        return self.registry.get_sample_value("stream_processor_task_slots")

    @property
    def refused(self) -> float | None:
        return self.registry.get_sample_value("stream_processor_refused_files")


BEFORE = {"orders-by-key"}
ADDED = {"orders-by-item"}


@pytest.fixture
def run(tmp_path: Path, contract: Contract) -> Run:
    return Run(tmp_path, contract)


def test_a_new_file_starts_its_pipeline(run: Run) -> None:
    before = list(run.starts.running)
    run.copy("orders-by-item")

    assert run.look() == []
    assert run.running == BEFORE | ADDED
    assert run.starts.running[: len(before)] == before


@pytest.mark.parametrize(
    ("replaced", "named"),
    [
        ({"group_by": "items.item"}, "group_by"),
        ({"forget_deleted": "99999999999999d"}, "forget_deleted: is too long"),
        ({"name": "lease"}, "name: is that of a file beside the checkpoints"),
        ({"sink": {"topic": "x", "config": {"cleanup.policy": "delete"}}}, "sink.config: cleanup.policy is delete"),
        ({"name": "orders-by-key"}, "is also the name of"),
        ({"sink": {"topic": "orders-by-key"}}, "is also written by"),
    ],
)
def test_a_wrong_file_is_told_once_and_counted_until_it_is_right(
    run: Run, replaced: dict[str, object], named: str
) -> None:
    run.copy("orders-by-item", **replaced)
    [refusal] = run.look()

    assert named in refusal
    assert run.look() == []
    assert (run.running, run.refused) == (BEFORE, 1)

    run.copy("orders-by-item")

    assert run.look() == []
    assert (run.running, run.refused) == (BEFORE | ADDED, 0)


def test_a_pipeline_waits_for_its_topics(run: Run) -> None:
    run.topics.absent = frozenset({"orders-by-item"})
    run.copy("orders-by-item")

    assert run.look() == ["cannot start the pipeline; the others go on no topic orders-by-item"]

    run.topics.absent = frozenset()
    run.look()

    assert (run.running, run.refused) == (BEFORE | ADDED, 0)


def test_a_pipeline_waits_for_its_task_slots(run: Run) -> None:
    run.slots = 4
    run.copy("orders-by-item")
    [refusal] = run.look()

    assert "there are 4 task slots and 5 are needed: add workers to a cluster, otherwise restart the process" in refusal
    assert (run.running, run.refused) == (BEFORE, 1)
    assert run.additions.checkpoints.read("orders-by-item.json") is None  # it has taken no epoch

    run.slots = 5

    assert run.look() == []
    assert (run.running, run.refused) == (BEFORE | ADDED, 0)


@pytest.mark.parametrize("is_gone", [False, True], ids=["until it is taken", "until its file is gone"])
def test_a_new_pipeline_waits_for_a_table_that_is_refused(run: Run, is_gone: bool) -> None:
    joining, table = (run.directory / f"{name}.yaml" for name in ("invoices-with-store", "stores-by-key"))
    for file in (joining, table):
        file.write_text((DOMAINS / "invoices" / file.name).read_text())
    run.topics.absent = frozenset({"stores"})
    run.look()

    assert run.running == BEFORE
    assert run.starts.notes() == ["invoices-with-store waits for stores-by-key, which stands still"]

    if is_gone:
        table.unlink()
    run.topics.absent = frozenset()
    run.look()

    assert run.running == BEFORE | {joining.stem if is_gone else table.stem}


def test_a_changed_file_starts_its_own_pipeline_again(run: Run) -> None:
    run.copy("orders-by-item")
    run.look()
    before = {each.plan.name: each for each in run.starts.running}
    run.copy("orders-by-key", trigger={"mode": "realtime", "checkpoint": "7s"})

    assert run.look() == []
    now = {each.plan.name: each for each in run.starts.running}
    assert now.keys() == before.keys()
    assert {name for name in now if now[name] is not before[name]} == {"orders-by-key"}
    assert now["orders-by-key"].plan.trigger.checkpoint.total_seconds() == 7
    assert [each.name for each in run.additions.plans].count("orders-by-key") == 1


def test_what_readers_of_one_source_must_agree_on_is_changed_in_all_their_files(run: Run) -> None:
    run.copy("orders-by-item")
    run.look()
    source = {"topic": "orders", "message": "statecast.orders.v1.OrderChange", "format": "debezium-json", "epoch": 2}
    before = list(run.starts.running)
    run.copy("orders-by-key", source=source)
    [refused] = run.look()
    assert "by another file" in refused
    assert run.starts.running == before
    run.copy("orders-by-item", source=source)

    assert run.look() == []
    assert run.refused == 0
    assert {each.pipeline.definition.source.epoch for each in run.additions.plans} == {2}


def test_files_that_change_or_are_refused_while_a_run_starts_are_changes_of_its_first_look(tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.yaml" for name in ("changed", "refused", "run")]
    for file in files:
        file.write_text("name: before")
    directories = PipelineDirectories([tmp_path], files, Settings())
    files[0].write_text("name: after")
    directories.keep([files[0], files[2]])

    assert directories.changes() is None
    changes = directories.changes()
    assert changes is not None
    assert (changes.changed, changes.gone) == (files[:2], [])


def test_a_file_that_changes_while_its_pipeline_is_started_is_taken_at_the_next_look(run: Run) -> None:
    ask = run.topics.missing

    def missing(access: Mapping[str, Iterable[str]]) -> str | None:
        run.copy("orders-by-key", trigger={"mode": "realtime", "checkpoint": "9s"})
        return ask(access)

    run.topics.missing = missing  # type: ignore[method-assign]  # the moment between the reading and the start
    run.copy("orders-by-key", trigger={"mode": "realtime", "checkpoint": "7s"})
    run.look()
    run.look()

    [running] = run.starts.running
    assert running.plan.trigger.checkpoint.total_seconds() == 9


def test_a_changed_file_that_means_the_same_starts_nothing_again(run: Run) -> None:
    before = list(run.starts.running)
    file = run.directory / "orders-by-key.yaml"
    file.write_text(file.read_text() + "# a comment\n")

    assert run.look() == []
    assert run.starts.running == before


def test_any_change_of_its_file_starts_a_pipeline_that_is_stopped(run: Run) -> None:
    run.copy("orders-by-item")
    run.look()
    run.starts.stand_still({"orders-by-key": "it failed"})
    file = run.directory / "orders-by-key.yaml"
    file.write_text(file.read_text() + "# a comment\n")

    assert run.look() == []
    assert "orders-by-key" in run.running
    assert run.starts.stopped == {}


def test_a_change_that_needs_a_new_generation_is_refused_and_the_pipeline_goes_on(run: Run, tmp_path: Path) -> None:
    run.additions.checkpoints.replace("orders-by-key.json", {"epoch": 1, "where": None})
    (tmp_path / "checkpoints" / "orders-by-key").mkdir()
    before = list(run.starts.running)
    run.copy("orders-by-key", where="total_cents > 0")
    [changed] = run.look()

    assert "changed since the checkpoint" in changed
    assert (run.starts.running, run.refused) == (before, 1)


def test_a_file_with_another_name_replaces_its_pipeline(run: Run) -> None:
    run.copy("orders-by-key", name="orders-g2", sink={"topic": "orders.g2"})

    assert run.look() == []
    assert "orders-g2" in run.running
    assert "orders-by-key" not in run.running


def test_the_pipeline_of_a_file_that_goes_ends_alone_and_comes_back_with_its_file(run: Run) -> None:
    run.copy("orders-by-item")
    run.look()
    [kept, _] = run.starts.running
    file = run.directory / "orders-by-item.yaml"
    content = file.read_text()
    file.unlink()

    assert run.look() == []
    assert run.starts.running == [kept]
    assert [each.name for each in run.additions.plans] == ["orders-by-key"]
    assert run.up("orders-by-item") is None
    assert run.slots_needed == slots_needed(run.additions.plans)

    file.write_text(content)

    assert run.look() == []
    assert run.running == BEFORE | ADDED
    assert run.starts.running[0] is kept


def test_the_pipeline_of_a_file_with_another_name_now_goes_on_from_its_checkpoint(run: Run) -> None:
    (run.directory / "orders-by-key.yaml").rename(run.directory / "orders.yaml")

    assert run.look() == []
    assert run.running == BEFORE
    assert run.refused == 0


def test_a_run_without_files_waits_for_one(run: Run) -> None:
    (run.directory / "orders-by-key.yaml").unlink()

    assert run.look() == []
    assert run.running == set()

    run.copy("orders-by-item")

    assert run.look() == []
    assert run.running == ADDED


def test_a_stopped_pipeline_that_is_gone_is_told_of_no_more(run: Run) -> None:
    run.copy("orders-by-item")
    run.look()
    run.starts.stand_still({"orders-by-item": "it failed"})
    (run.directory / "orders-by-item.yaml").unlink()
    run.look()

    assert (run.starts.stopped, run.starts.notes()) == ({}, [])


def test_an_added_query_that_fails_stays_stopped_after_some_starts_and_ends_no_other(run: Run) -> None:
    run.error = ValueError("no such plan")
    run.copy("orders-by-item")
    run.look()
    run.look()

    assert run.running == BEFORE
    assert {*run.starts.stopped} == ADDED


def test_what_a_config_map_swaps_is_no_change(run: Run) -> None:
    (run.directory / "..data").mkdir()
    (run.directory / "..data" / "orders-by-item.yaml").write_text("name: x")

    assert run.look() == []
    assert run.running == BEFORE
