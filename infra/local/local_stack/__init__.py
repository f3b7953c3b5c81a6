"""The whole of Statecast as plain processes on one machine: real broker, real Spark, all services, a gateway."""

from statecast_service.errors import ServiceError


class LocalStackError(ServiceError):
    """The local stack cannot do what was asked: the text says why, and what to do about it."""
