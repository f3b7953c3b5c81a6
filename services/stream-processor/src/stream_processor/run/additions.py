"""Follows the directories of a run: starts pipelines of new and of changed files, and ends those of files that go."""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import structlog
from confluent_kafka import KafkaException
from pyspark.errors import PySparkException
from pyspark.sql.streaming.readwriter import DataStreamWriter

from statecast.descriptors import MessageTypes
from statecast_domains.directories import pipeline_files
from statecast_domains.errors import DomainFileError
from statecast_service.errors import ServiceError
from statecast_service.watched_files import Settled, content_of, state_of
from stream_processor import shapes
from stream_processor.errors import TooFewSlotsError, TopicsMissingError
from stream_processor.metrics import Metrics
from stream_processor.pipeline.fields import Contract
from stream_processor.run.admission import RefusedFiles
from stream_processor.run.checkpoints import Checkpoints, claim, sized
from stream_processor.run.letters import DeadLetterLimits
from stream_processor.run.plan import QueryPlan, access_of, check_together, slots_needed
from stream_processor.run.starts import Starts, Waiting
from stream_processor.run.topics import Topics, fitted, planned
from stream_processor.settings import Settings

log = structlog.get_logger()

Content = bytes | str


class Changes(NamedTuple):
    """Changes of the files of directories: those that are not run as they are now, and those that are gone."""

    changed: list[Path]
    gone: list[Path]


class PipelineDirectories:
    """Follows the files in the directories: those that come, change and go after their pipelines began."""

    def __init__(self, directories: Sequence[Path], files: Sequence[Path], settings: Settings) -> None:
        """`files` are those that the run begins with. Make it before they are read: what changes later is a change."""
        self._directories = directories
        self._settled = Settled(lambda: (self._read(directories), state_of(settings.descriptors)))
        self._running: dict[Path, Content] = {file: content_of(file) for file in files if self.follows(file)}

    def keep(self, running: Collection[Path]) -> None:
        """Notes that only pipelines of these files run: the others count as new."""
        self._running = {file: content for file, content in self._running.items() if file in running}

    def follows(self, file: Path) -> bool:
        """Returns whether the file is in one of the directories."""
        return any(file.is_relative_to(directory) for directory in self._directories)

    def changes(self) -> Changes | None:
        """Returns files not run as they are now, and those gone, when anything has changed; else None."""
        if (news := self._settled.news()) is None:
            return None
        contents, _ = news
        gone = sorted(self._running.keys() - contents.keys())
        for file in gone:
            del self._running[file]
        return Changes([file for file, content in contents.items() if self._running.get(file) != content], gone)

    def taken(self, file: Path, content: Content) -> None:
        """Notes that the pipeline of the file is run as the file was before it was read."""
        if self.follows(file):
            self._running[file] = content

    @staticmethod
    def _read(directories: Sequence[Path]) -> dict[Path, Content]:
        contents: dict[Path, Content] = {}
        for directory in directories:
            with suppress(DomainFileError):  # it is empty now
                contents |= {file: content_of(file) for file in pipeline_files([directory])}
        return contents


@dataclass
class Additions:
    """Starts the pipelines of new files, and those of changed files again, one after the other, and ends those of files
    that are gone; touches no other query.

    A file that is refused is logged once, and so is a file with a pipeline that does not fit beside the others; the
    pipeline that ran from it before goes on. A pipeline without its topics or its task slots is looked at again.
    `slots` returns the number of task slots. A real-time query that does not find its own slots ends at once, so a
    pipeline that needs more slots than there are waits until executors have come or pipelines have gone.
    """

    directories: PipelineDirectories
    refused: RefusedFiles
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

    def look(self) -> None:
        """Has the pipelines started that may start, and ended those with files that are gone.

        May block for seconds; the queries run meanwhile.
        """
        files, follows = self.refused.passing, self.directories.follows
        if (changes := self.directories.changes()) is not None:
            changed, self._contract = changes.changed, None
            for file in changes.gone:
                self._end(file)
            files = [*changed, *(file for file in files if not follows(file))]
            self.refused.keep(lambda file: file in changed or not follows(file))
        fit = bool(files) and self._fit_together(files)
        for file in files:
            with self.refused.refusing(file, KafkaException, PySparkException):
                self._take(file, fit)

    def _fit_together(self, files: Sequence[Path]) -> bool:
        """Returns whether the pipelines of all these files fit each other and the others that run."""
        try:
            pipelines = [shapes.read(file, self._current_contract()) for file in files]
            running = [each.pipeline for each in self.plans]
            check_together([*(each for each in running if Path(each.file) not in files), *pipelines])
        except ServiceError:  # each file is checked alone then, and tells its reason
            return False
        return True

    def _current_contract(self) -> Contract:
        if self._contract is None:  # the mounted files may have more messages than when the run began
            self._contract = Contract(self.settings.with_descriptors(MessageTypes.read).descriptor_set)
        return self._contract

    def _end(self, file: Path) -> None:
        """Ends the pipeline of a file that is gone; its topics and its checkpoint stay as they are."""
        if (plan := self._running(file)) is not None:
            self._forget(plan)
            self.starts.remove([plan.name])
            self.metrics.slots.set(slots_needed(self.plans))
            log.info("a pipeline ended because its file was removed", file=str(file), pipeline=plan.name)

    def _running(self, file: Path) -> QueryPlan | None:
        return next((each for each in self.plans if Path(each.pipeline.file) == file), None)

    def _take(self, file: Path, fits: bool) -> None:
        content = content_of(file)
        pipeline = shapes.read(file, self._current_contract())
        self.refused.note(pipeline)
        before = self._running(file)
        is_same = before is not None and before.pipeline.definition == pipeline.definition
        if is_same and pipeline.name not in self.starts.stopped:  # a file that is written anew starts a stopped one
            self._note(file, content)
            return
        # Settings that all readers of a source share, such as its epoch, change in all their files at once.
        beside = [each for each in self.plans if each is not before]
        if not fits:
            check_together([*(each.pipeline for each in beside), pipeline])
        if (missing := self.topics.missing(access_of([pipeline]))) is not None:
            raise TopicsMissingError(missing)
        pipeline = fitted(pipeline, self.topics)
        [plan] = planned([pipeline], self.topics, self.settings.checkpoint_interval)
        plan = sized(self.checkpoints, plan)
        needed, offered = slots_needed([*beside, plan]), self.slots()
        if needed > offered:
            raise TooFewSlotsError(
                f"there are {offered} task slots and {needed} are needed: add workers to a cluster, otherwise "
                "restart the process"
            )
        # Last: it takes an epoch, and may read the whole sink.
        plan = claim(self.checkpoints, plan, self.topics.highest_epoch)
        waiting = Waiting(plan, self.prepare(plan, self._current_contract()))
        exists = self.checkpoints.exists(plan.name)
        if before is not None:
            self._forget(before)
            self.starts.remove({before.name} - {plan.name})
        self.starts.add([waiting], lambda _: not exists)
        self._note(file, content)
        self.limits.add(pipeline)
        self.plans.append(plan)
        self.metrics.slots.set(needed)
        event = "a pipeline is new" if before is None else "a pipeline has changed"
        log.info(event, file=str(file), pipeline=pipeline.name)

    def _forget(self, before: QueryPlan) -> None:
        """Stops the query of a pipeline that ends, or that another one replaces."""
        self.starts.forget([before.name])
        self.limits.remove(before.pipeline)
        self.plans.remove(before)

    def _note(self, file: Path, content: Content) -> None:
        self.directories.taken(file, content)
        self.refused.keep(lambda other: other != file)
