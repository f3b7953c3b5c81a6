"""Errors that can end the stream-processor.

Each is a ServiceError: its text is printed as one line, with its exit status. A problem in a pipeline's file is a
`statecast_domains.errors.PipelineFileError`.
"""

from statecast_service.errors import ServiceError


class ConfigurationError(ServiceError):
    """Nothing was started; change the input."""

    exit_status = 2


class PipelineChangedError(ConfigurationError):
    """The file differs from the one that its checkpoint was made with."""


class TooFewSlotsError(ConfigurationError):
    """The master gives fewer task slots than the pipelines hold for good."""


class TopicsMissingError(ConfigurationError):
    """A pipeline that was added waits for its topics."""


class NotBuiltError(ConfigurationError):
    """Java or the jars are missing."""


class CheckpointsUnusableError(ConfigurationError):
    """The place of the checkpoints cannot be read or written."""


class NoteDamagedError(CheckpointsUnusableError):
    """A note beside the checkpoints is no JSON object."""


class RuntimeFailure(ServiceError):  # noqa: N818  the family of errors, not an error of its own
    """Something ended while running; a supervisor should start the program again."""


class QueryFailedError(RuntimeFailure):
    """A query cannot start, or has ended by itself; it is tried again, and the others go on."""


class NoRoomError(QueryFailedError):
    """The checkpoint or Spark's directory cannot be written, as on a full disk: the query is tried without end."""


class RecordsGoneError(QueryFailedError):
    """A source topic no longer has records that the query has not read."""


class SparkLostError(RuntimeFailure):
    """Spark's JVM has ended, and all queries with it."""


class BrokerLostError(RuntimeFailure):
    """Kafka went away while the pipelines started."""


class StandstillError(RuntimeFailure):
    """Each pipeline stands still: it has too many dead letters, lost its topic or failed too often."""


class CheckpointsTakenError(RuntimeFailure):
    """Another process has taken the checkpoints, or may have."""


class ContractError(Exception):
    """A name is not in the contract; the text gives the nearest one."""
