"""What can go wrong when the gateway's file is rendered.

KongEnvoyError            the command ends with its text and status 1
├── UnreadableError       the file is missing, or is not YAML
├── UnsupportedError      the file says something that would not be carried over exactly; names where
├── MissingVariableError  the file refers to an environment variable that is not set
└── AddressError          an address to listen on or to resolve a target to is wrong
"""


class KongEnvoyError(Exception):
    """The file cannot be rendered; the text says where and what to do."""


class UnreadableError(KongEnvoyError):
    """The file is missing, or is not YAML."""


class UnsupportedError(KongEnvoyError):
    """The file says something that would not be carried over exactly."""


class MissingVariableError(KongEnvoyError):
    """The file refers to an environment variable that is not set."""


class AddressError(KongEnvoyError):
    """An address to listen on or to resolve a target to is wrong."""
