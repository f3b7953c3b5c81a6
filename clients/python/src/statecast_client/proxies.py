"""The HTTP proxy on the way to a server: the one asked for, or that of the environment; none to this machine."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

GRPC_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The variables that gRPC reads, in this order."""


def is_loopback(host: str) -> bool:
    """Whether the host is this machine, to which no proxy leads."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_of(url: str, wanted: str | None = None) -> str | None:
    """Returns the proxy to the address of a socket or a call; None to connect directly."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if wanted or is_loopback(host) or proxy_bypass(host):
        return wanted or None
    scheme = "https" if parts.scheme in ("wss", "https") else "http"
    return getproxies().get(scheme) or getproxies().get("all")


def grpc_proxy_of(address: str, wanted: str | None = None) -> str | None:
    """Returns the proxy to `host:port` of an instance; None to connect directly."""
    host = address.rpartition(":")[0].strip("[]")
    if wanted or is_loopback(host) or proxy_bypass(host):
        return wanted or None
    return next((os.environ[name] for name in GRPC_VARIABLES if os.environ.get(name)), None)


def through(proxy: str | None) -> str:
    """Returns how an error names the proxy; empty without one. A password in its address stays out."""
    if proxy is None:
        return ""
    parts = urlsplit(proxy)
    return f" through the proxy {parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()}"
