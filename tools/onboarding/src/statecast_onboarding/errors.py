"""Errors that end the commands; the text is printed as one line, with the exit status.

OnboardingError         something is wrong with the input
├── UnreachableError    a server does not answer, or refuses
└── FileExistsAlready   a file would be overwritten
"""

from statecast_service.errors import ServiceError

WRONG_URL = "the URL is wrong: write {}, with %40 for @ in a password, %2F for /, %25 for %"
"""Instead of the texts of libraries, which quote the URL or a part of the password."""


class OnboardingError(ServiceError):
    """An argument, or the table that it names, cannot be used; the text names the necessary change."""

    exit_status = 2


class UnreachableError(OnboardingError):
    """A server does not answer, or refuses."""


class FileExistsAlready(OnboardingError):  # noqa: N818  a fact about the directory
    """A file would be overwritten that somebody may have edited."""
