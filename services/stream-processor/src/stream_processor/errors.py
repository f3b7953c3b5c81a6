"""What can end the stream-processor.

StreamProcessorError            the program ends with the text as one line
├── ConfigurationError          exit 2: nothing was started; change the input
│   ├── SettingsError           an environment variable has a bad value
│   ├── PipelineFileError       a pipeline file is wrong; names the file and the key
│   ├── PipelineChangedError    the file differs from the one that its checkpoint was made with
│   ├── TopicMismatchError      two pipelines write one topic, or a topic's partitions changed
│   ├── TooFewSlotsError        the master gives fewer task slots than the pipelines hold for good
│   ├── NotBuiltError           Java or the jars are missing
│   └── CheckpointsUnusableError  where checkpoints stand cannot be read or written
└── RuntimeFailure              exit 1: a supervisor should start it again
    ├── QueryFailedError        a query ended; the others are stopped
    ├── BrokerLostError         Kafka went away while the pipelines started
    ├── DeadLetterLimitError    too many dead letters; starting again does not help
    └── CheckpointsTakenError   another process has taken the checkpoints
ContractError                   a name is not in the contract; becomes a PipelineFileError with its key
"""


class StreamProcessorError(Exception):
    """The program cannot go on; the text says what to do."""

    exit_status = 1


class ConfigurationError(StreamProcessorError):
    """Nothing was started; change the input."""

    exit_status = 2


class SettingsError(ConfigurationError):
    """An environment variable has a bad value."""


class PipelineFileError(ConfigurationError):
    """A pipeline file is wrong."""

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")


class PipelineChangedError(ConfigurationError):
    """The file differs from the one that its checkpoint was made with."""


class TopicMismatchError(ConfigurationError):
    """Two pipelines write one topic, or a topic's partitions changed."""


class TooFewSlotsError(ConfigurationError):
    """The master gives fewer task slots than the pipelines hold for good."""


class NotBuiltError(ConfigurationError):
    """Java or the jars are missing."""


class CheckpointsUnusableError(ConfigurationError):
    """Where checkpoints stand cannot be read or written."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"STREAM_PROCESSOR_CHECKPOINTS: {problem}")


class RuntimeFailure(StreamProcessorError):  # noqa: N818  the family of errors, not an error of its own
    """Something ended while running; a supervisor should start the program again."""


class QueryFailedError(RuntimeFailure):
    """A query ended; the others are stopped."""


class BrokerLostError(RuntimeFailure):
    """Kafka went away while the pipelines started."""


class DeadLetterLimitError(RuntimeFailure):
    """Too many dead letters; starting again does not help."""


class CheckpointsTakenError(RuntimeFailure):
    """Another process has taken the checkpoints, or may have."""


class ContractError(Exception):
    """A name is not in the contract; the text gives the nearest one."""
