"""Reads addresses of the form host:port."""

from ipaddress import ip_address
from typing import Any

from kong_envoy.errors import AddressError


def split(address: str) -> tuple[str, int]:
    """Host and port. Raises AddressError for another form."""
    host, colon, port = address.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65535):
        raise AddressError(f"{address!r} must have the form host:port")
    return host, int(port)


def socket_address(address: str) -> dict[str, Any]:
    """An address in Envoy's form."""
    host, port = split(address)
    return {"socket_address": {"address": host, "port_value": port}}


def loopback_address(address: str) -> dict[str, Any]:
    """An address of this machine in Envoy's form. Raises AddressError for any that others could reach."""
    host, _ = split(address)
    try:
        is_loopback = ip_address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise AddressError(f"{address!r} is not of this machine: the rendered gateway listens on 127.0.0.1 only")
    return socket_address(address)
