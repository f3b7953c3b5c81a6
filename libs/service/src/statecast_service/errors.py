"""Errors of the chassis; a service derives from them, or maps them in its `__main__`.

ServiceError            the process ends with the text as one line
├── SettingsError       an environment variable, or a file that it names, is wrong
└── PortInUseError      a port cannot be listened on
"""

from typing_extensions import override


class ServiceError(Exception):
    """The process cannot go on; the text is one line that says what to do, even if it quotes several lines."""

    exit_status = 1

    @override
    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class SettingsError(ServiceError):
    """An environment variable, or a file that it names, is wrong."""

    exit_status = 2


class PortInUseError(ServiceError):
    """A port cannot be listened on."""

    exit_status = 2

    def __init__(self, host: str, port: int, cause: OSError, host_variable: str, port_variable: str) -> None:
        reason = cause.strerror or str(cause)
        super().__init__(
            f"cannot listen on {host}:{port} of {host_variable} and {port_variable}={port}: {reason}; "
            "set them to an address that is free"
        )
