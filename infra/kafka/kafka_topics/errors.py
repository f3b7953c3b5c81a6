"""What can go wrong with the topics.

TopicsError              the command ends with the error's text
├── TopicsFileError      the file cannot be read or says something wrong (status 2)
├── BrokerAwayError      no broker answered in time (status 1)
├── TopicRefusedError    the broker refused to create a topic (status 1)
└── TopicsDifferError    existing topics are not as the file says (status 1)
"""


class TopicsError(Exception):
    """The topics are not as the file says; the text says what to do."""

    exit_status = 1


class TopicsFileError(TopicsError):
    """The file cannot be read, or a key of it is wrong."""

    exit_status = 2


class BrokerAwayError(TopicsError):
    """No broker answered in time."""


class TopicRefusedError(TopicsError):
    """The broker refused to create a topic."""


class TopicsDifferError(TopicsError):
    """Existing topics differ from the file."""
