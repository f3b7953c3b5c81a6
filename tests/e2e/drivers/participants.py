"""Who takes part: the gateway of a stack and the demo users behind it."""

from drivers.mobile import Gateway, Phone
from local_stack.running_stack import RunningStack


def as_gateway(stack: RunningStack) -> Gateway:
    """The gateway of a stack, as its clients see it."""
    gateway = stack.file.gateway
    return Gateway(https=gateway.https, wss=gateway.wss, ca_certificate=str(gateway.ca_certificate))


def phone_of(stack: RunningStack, user: str) -> Phone:
    """The phone of one of the gateway's demo users."""
    credentials = stack.file.credentials[user].basic
    assert credentials is not None, f"{user} has no name and password"
    return Phone(as_gateway(stack), credentials.username, credentials.password)
