"""What ends the simulator; `__main__` maps each to an exit status and one line of text, and nothing else does.

SimulatorError            status 1
├── SettingsError         a setting is wrong (status 2)
├── DatabaseError         the database file cannot be opened, read or written
│   └── DatabaseInUseError  another simulator has it
├── PublishError          Kafka refused a change for good; the cursor stays before it
└── PortInUseError        the port for metrics and health is taken

What passes by itself is no error: a broker or a topic that is not there is waited for.
"""


class SimulatorError(Exception):
    """The simulator cannot go on; the text says what to do."""

    exit_status = 1


class SettingsError(SimulatorError):
    """A setting is wrong, or does not fit the database that it names."""

    exit_status = 2


class DatabaseError(SimulatorError):
    """The database file cannot be opened, read or written."""


class DatabaseInUseError(DatabaseError):
    """Another simulator has the database open."""


class PublishError(SimulatorError):
    """Kafka refused a change for good."""


class PortInUseError(SimulatorError):
    """The port for metrics and health is taken."""
