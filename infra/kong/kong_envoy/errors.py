"""What can go wrong when the gateway's file is rendered."""


class KongEnvoyError(Exception):
    """The file, a variable or an address is wrong or missing; the text says where, and what to do."""


class UnsupportedError(KongEnvoyError):
    """The file says something that would not be carried over exactly; the text names the place."""
