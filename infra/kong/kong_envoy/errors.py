"""Errors of rendering the gateway's file."""


class KongEnvoyError(Exception):
    """The file, a variable or an address is wrong or missing; the text names the place and the remedy."""


class UnsupportedError(KongEnvoyError):
    """The file says something that would not be carried over exactly; the text names the place."""
