"""Errors that end the simulator; only `__main__` maps each to an exit status and one line of text.

ServiceError (of the chassis)
├── SettingsError       a setting is wrong, or does not fit the database (status 2)
├── PortInUseError      the port for metrics and health is taken
├── DatabaseError       the database cannot be opened, read or written (status 1)
│   ├── DatabaseInUseError  another simulator has it
│   └── DatabaseAwayError   PostgreSQL is away: the simulator tries again, and does not end
└── PublishError        Kafka refused a change for good; the cursor stays before it (status 1)

A missing broker or topic is no error: the simulator waits for it.
"""

from statecast_service.errors import ServiceError


class DatabaseError(ServiceError):
    """The database cannot be opened, read or written."""


class DatabaseInUseError(DatabaseError):
    """Another simulator has the database open."""


class DatabaseAwayError(DatabaseError):
    """PostgreSQL is away or asks to try again, which the simulator does."""


class PublishError(ServiceError):
    """Kafka refused a change for good; the cursor stays before it."""
