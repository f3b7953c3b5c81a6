"""Refuses the files of pipelines that cannot run, so that the others can."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import structlog
from confluent_kafka import KafkaException

from statecast_service.errors import ServiceError
from stream_processor import shapes
from stream_processor.errors import (
    CheckpointsUnusableError,
    ConfigurationError,
    TooFewSlotsError,
    TopicsMissingError,
)
from stream_processor.metrics import Metrics
from stream_processor.pipeline.fields import Contract
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.plan import check_together

log = structlog.get_logger()

PASSING = (TopicsMissingError, CheckpointsUnusableError, KafkaException, TooFewSlotsError)
"""Errors that may be over at the next look, although no file changes."""


class RefusedFiles:
    """The files that are not run as they are, each with the reason: logged once, counted, and told on /readyz."""

    def __init__(self, metrics: Metrics) -> None:
        self.errors: dict[Path, Exception] = {}
        self._read: dict[Path, Pipeline] = {}
        self._metrics = metrics

    @contextmanager
    def refusing(self, file: Path, *others: type[Exception]) -> Iterator[None]:
        """Refuses the file when the block raises ServiceError or one of the others."""
        errors: tuple[type[Exception], ...] = (ServiceError, *others)
        try:
            yield
        except errors as error:
            self.refuse(file, error)

    def note(self, pipeline: Pipeline) -> None:
        """Notes which pipeline its file has, for the case that the file is refused."""
        self._read[Path(pipeline.file)] = pipeline

    def tables(self) -> dict[str, str]:
        """Returns, by keyed topic, the name of the pipeline that would write it if its file were not refused."""
        refused = [pipeline for file, pipeline in self._read.items() if file in self.errors and pipeline.shuffles]
        return {each.sink_topic: each.name for each in refused}

    def refuse(self, file: Path, error: Exception) -> None:
        """Notes that the file is refused for this error."""
        if str(self.errors.get(file)) != str(error):
            log.error("cannot start the pipeline; the others go on", file=str(file), reason=str(error))
        self.errors[file] = error
        self._metrics.refused_files.set(len(self.errors))

    @property
    def passing(self) -> list[Path]:
        """The files that may be taken at the next look, although they do not change."""
        return [file for file, error in self.errors.items() if isinstance(error, PASSING)]

    def keep(self, is_kept: Callable[[Path], bool]) -> None:
        """Forgets the other files, which have gone or run now."""
        self.errors = {file: error for file, error in self.errors.items() if is_kept(file)}
        self._read = {file: pipeline for file, pipeline in self._read.items() if is_kept(file)}
        self._metrics.refused_files.set(len(self.errors))

    def check_any_left(self, pipelines: Collection[object]) -> None:
        """Raises the first error when no pipeline is left to run."""
        if not pipelines:
            raise next(iter(self.errors.values()), ConfigurationError("there is no pipeline"))

    def notes(self) -> list[str]:
        """Returns a line for people about each file."""
        return [f"{file} is refused: {error}" for file, error in self.errors.items()]


def sound_pipelines(files: Sequence[Path], contract: Contract, refused: RefusedFiles) -> list[Pipeline]:
    """Returns the pipelines of those of the files that can run side by side; each is checked beside those before it."""
    sound: list[Pipeline] = []
    for file in files:
        with refused.refusing(file):
            pipeline = shapes.read(file, contract)
            refused.note(pipeline)
            check_together([*sound, pipeline])
            sound.append(pipeline)
    return sound
