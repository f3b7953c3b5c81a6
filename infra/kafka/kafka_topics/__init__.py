"""Creates the topics that a file declares, and checks those that exist against it."""

from statecast_service.errors import ServiceError


class TopicsError(ServiceError):
    """The topics are not as the file says; the text says what to do."""


class TopicsFileError(TopicsError):
    """The file cannot be read, or a key of it is wrong."""

    exit_status = 2


class BrokerAwayError(TopicsError):
    """No broker answered in time."""


class TopicRefusedError(TopicsError):
    """The broker refused to create a topic."""
