"""What can go wrong with the local stack.

LocalStackError          the command ends with its text and status 1
├── NotInstalledError    a part has not been built: `make install`
├── DirectoryError       the stack's directory cannot be used
├── AlreadyRunningError  a stack already runs in this directory
├── NotRunningError      no stack runs in this directory
├── PortInUseError       a port that was asked for is taken
└── NotReadyError        a part did not become ready in time, or kept ending
"""


class LocalStackError(Exception):
    """The command cannot go on; the text says what to do."""


class NotInstalledError(LocalStackError):
    """A part has not been built."""


class DirectoryError(LocalStackError):
    """The stack's directory cannot be used."""


class AlreadyRunningError(LocalStackError):
    """A stack already runs in this directory."""


class NotRunningError(LocalStackError):
    """No stack runs in this directory."""


class PortInUseError(LocalStackError):
    """A port that was asked for is taken."""


class NotReadyError(LocalStackError):
    """A part did not become ready in time, or kept ending."""
