"""The whole of Statecast as plain processes on one machine: real broker, real Spark, all services, a gateway."""

from statecast_service.errors import ServiceError


class LocalStackError(ServiceError):
    """The local stack cannot do as asked: the text names the cause and the remedy."""
