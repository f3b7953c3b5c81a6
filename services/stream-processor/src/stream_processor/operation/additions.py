"""Adds pipelines to a run: follows the run's directories, and starts the sound pipelines beside those that run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import structlog
from confluent_kafka import KafkaException
from pyspark.errors import PySparkException
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast.descriptors import MessageTypes
from statecast_domains.directories import pipeline_files
from statecast_domains.errors import DomainFileError
from statecast_service.errors import ServiceError
from statecast_service.watched_files import Settled, content_of, state_of
from stream_processor.definition import pipeline_check
from stream_processor.definition.contract import Contract
from stream_processor.definition.pipeline import Pipeline, dead_letter_topic, inputs_of, source_topics_of
from stream_processor.errors import CheckpointsUnusableError, TooFewSlotsError, TopicsMissingError
from stream_processor.metrics import Metrics
from stream_processor.operation.checkpoints import Checkpoints, claim
from stream_processor.operation.dead_letters import DeadLetterLimits
from stream_processor.operation.plan import (
    QueryPlan,
    access_of,
    begun,
    check_together,
    letters_apart,
    plan,
    slots_needed,
    topics_of,
)
from stream_processor.operation.starts import Starts
from stream_processor.operation.topics import Topics, check_kept, with_record_limits
from stream_processor.settings import Settings

log = structlog.get_logger()

Content = bytes | str


class PipelineDirectories:
    """Tells which files in the directories have come since the run began. Others are followed for the log alone."""

    def __init__(self, directories: Sequence[Path], running: Sequence[Path], settings: Settings) -> None:
        """`running` are the files of the pipelines that the run began with."""
        self._settled = Settled(lambda: (self._read(directories), state_of(settings.descriptors)))
        self._running: dict[Path, Content] = {file: content_of(file) for file in running if _is_in(file, directories)}
        self._told: set[tuple[Path, Content | None]] = set()

    def new(self) -> list[Path] | None:
        """The files that are not of the run, when anything has changed; None without a change."""
        if (news := self._settled.news()) is None:
            return None
        contents, _ = news
        for file, content in self._running.items():
            now = contents.get(file)
            if now != content and (file, now) not in self._told:
                self._told.add((file, now))
                event = "the file is gone" if now is None else "the file has changed"
                log.warning(f"{event}; its pipeline goes on as it is until the process is started anew", file=str(file))
        return [file for file in contents if file not in self._running]

    def taken(self, file: Path) -> None:
        """Notes that the pipeline of the file is of the run now."""
        self._running[file] = content_of(file)

    @staticmethod
    def _read(directories: Sequence[Path]) -> dict[Path, Content]:
        contents: dict[Path, Content] = {}
        for directory in directories:
            with suppress(DomainFileError):  # it is empty now
                contents |= {file: content_of(file) for file in pipeline_files([directory])}
        return contents


def _is_in(file: Path, directories: Sequence[Path]) -> bool:
    return any(file.is_relative_to(directory) for directory in directories)


@dataclass
class Additions:
    """Starts the pipelines of new files, one after the other; none of them touches a query that runs.

    A wrong file is logged once, and so is a file with a pipeline that does not fit beside the others. Both are counted
    in the metrics until they are right. A pipeline without its topics is looked at again. `slots` returns the number of
    task slots. A real-time query that does not find its own slots ends at once, so a pipeline that needs more slots
    than there are waits for the next start of the process.
    """

    directories: PipelineDirectories
    pipelines: list[Pipeline]
    plans: list[QueryPlan]
    starts: Starts
    topics: Topics
    limits: DeadLetterLimits
    checkpoints: Checkpoints
    settings: Settings
    metrics: Metrics
    slots: Callable[[], int]
    prepare: Callable[[QueryPlan, Contract], DataStreamWriter]
    _contract: Contract | None = field(default=None, init=False)
    _waiting: list[Path] = field(default_factory=list, init=False)
    _refused: dict[Path, str] = field(default_factory=dict, init=False)

    def look(self) -> list[QueryPlan]:
        """Starts the pipelines that may start, and returns their queries.

        May block for seconds; the queries run meanwhile.
        """
        if (new := self.directories.new()) is not None:
            self._waiting, self._contract = new, None
            self._refused = {file: reason for file, reason in self._refused.items() if file in new}
        files, self._waiting = self._waiting, []
        added: list[QueryPlan] = []
        for file in files:
            with self._refusing(file):
                added += self._add(file)
        self.metrics.refused_files.set(len(self._refused))
        return added

    def _add(self, file: Path) -> list[QueryPlan]:
        if self._contract is None:  # what is mounted may have more messages than when the run began
            self._contract = Contract(self.settings.with_descriptors(MessageTypes.read).descriptor_set)
        pipeline = pipeline_check.read(file, self._contract)
        check_together([*self.pipelines, pipeline])
        if (missing := self.topics.missing(access_of([pipeline]))) is not None:
            raise TopicsMissingError(missing)
        [pipeline] = with_record_limits([pipeline], self.topics.max_record_bytes)
        check_kept([pipeline], self.topics.config)
        names = topics_of([pipeline])
        apart = [letters_apart(each) for each in inputs_of(pipeline) if self._is_checked(each.source_topic)]
        states = self.topics.states(names)
        partitions = {name: each.partitions for name, each in states.items()}
        plans = plan([pipeline], partitions, self.settings.checkpoint_interval, apart)
        plans = [each.at(states) for each in begun(plans, self.topics.starts)]
        needed, offered = slots_needed([*self.plans, *plans]), self.slots()
        if needed > offered:
            raise TooFewSlotsError(f"there are {offered} task slots and {needed} are needed: start the process anew")
        highest = self.topics.highest_epoch
        plans = [replace(each, epoch=claim(self.checkpoints, each, highest)) for each in plans]
        prepared = [(each, self.prepare(each, self._contract)) for each in plans]
        is_new = [each.name for each in plans if not self.checkpoints.exists(each.name)]
        self.starts.add(prepared, partial(is_new.__contains__), self.topics.readable_ends)
        self._note(file, pipeline, plans)
        return plans

    def _is_checked(self, source: str) -> bool:
        """Whether a query that writes the dead letters of the source has read some of it."""
        is_read = any(source in source_topics_of(each) for each in self.pipelines)
        return is_read or self.checkpoints.exists(dead_letter_topic(source))

    def _note(self, file: Path, pipeline: Pipeline, plans: Sequence[QueryPlan]) -> None:
        self.directories.taken(file)
        self.limits.add(pipeline)
        self.pipelines.append(pipeline)
        self.plans += plans
        self._refused.pop(file, None)
        self.metrics.slots.set(slots_needed(self.plans))
        log.info("a pipeline is new", file=str(file), pipeline=pipeline.name)

    @contextmanager
    def _refusing(self, file: Path) -> Iterator[None]:
        try:
            yield
        except (ServiceError, KafkaException, PySparkException) as error:
            reason = str(error)
            if self._refused.get(file) != reason:
                log.error("the pipeline is not started; the others go on", file=str(file), reason=reason)  # noqa: TRY400  it says what to do
            self._refused[file] = reason
            if isinstance(error, _PASSING):
                self._waiting.append(file)


_PASSING = (TopicsMissingError, CheckpointsUnusableError, KafkaException)
"""Errors that may be over at the next look, although no file changes."""
