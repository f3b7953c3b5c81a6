"""The whole of Statecast as plain processes on one machine: real broker, real Spark, all services, a gateway."""


class LocalStackError(Exception):
    """A command of the local stack cannot go on: it ends with this text, which says what to do, and with status 1."""


class NotInstalledError(LocalStackError):
    """A part has not been built: `make install`."""


class DirectoryError(LocalStackError):
    """The stack's directory cannot be written."""


class AlreadyRunningError(LocalStackError):
    """A stack already runs in this directory."""


class NotRunningError(LocalStackError):
    """No stack runs in this directory, or it has no such process."""


class PortInUseError(LocalStackError):
    """A port that was asked for is taken."""


class NotReadyError(LocalStackError):
    """A process did not become ready in time, or kept ending."""
