"""Creates the topics that a file declares, and checks those that exist against it."""

from collections.abc import Sequence

from statecast_service.errors import ServiceError


class TopicsError(ServiceError):
    """The topics cannot be made to match the file; the text names the remedy."""


class TopicsFileError(TopicsError):
    """The file cannot be read, or a key of it is wrong."""

    exit_status = 2


class TopicsDifferError(TopicsError):
    """Topics are not as the file says: each of `differences` is a line that names one."""

    def __init__(self, differences: Sequence[str]) -> None:
        super().__init__("; ".join(differences))
        self.differences = differences
