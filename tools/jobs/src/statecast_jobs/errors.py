"""Errors that end a job before all rows are handled.

ServiceError
├── KafkaLostError       the topic of jobs cannot be read or written
└── InstanceError        the instance beside the runner refuses the scan, and would again
"""

from statecast_service.errors import ServiceError


class KafkaLostError(ServiceError):
    """The topic of jobs cannot be read or written; the run can be continued with the same name."""

    exit_status = 3


class InstanceError(ServiceError):
    """The instance refuses the scan, and would again: the store or an argument is wrong."""

    exit_status = 2
