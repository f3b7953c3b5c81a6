"""Errors in the files of a domain: each is a ServiceError, with a text of one line and the process's exit status.

DomainFileError         a file of a domain is wrong
└── PipelineFileError   a pipeline's file is wrong
"""

from statecast_service.errors import ServiceError


class DomainFileError(ServiceError):
    """A file of a domain is wrong; names the file and the key."""

    exit_status = 2

    def __init__(self, file: str, key: str, problem: str) -> None:
        super().__init__(f"{file}: {key}: {problem}" if key else f"{file}: {problem}")


class PipelineFileError(DomainFileError):
    """A pipeline file is wrong; names the file and the key."""
