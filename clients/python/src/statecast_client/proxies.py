"""The HTTP proxy on the way to a server: the one asked for, or that of the environment; none to this machine."""

import os
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

GRPC_VARIABLES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The variables that gRPC reads, in this order."""


def is_loopback(host: str) -> bool:
    """Returns whether the host is this machine, to which no proxy leads."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_of(url: str, wanted: str | None = None) -> str | None:
    """Returns the proxy to the address of a socket or a call; None to connect directly."""
    parts, proxies = urlsplit(url), getproxies()
    scheme = "https" if parts.scheme in ("wss", "https") else "http"
    return _chosen(parts.hostname or "", wanted, proxies.get(scheme) or proxies.get("all"))


def grpc_proxy_of(address: str, wanted: str | None = None) -> str | None:
    """Returns the proxy to `host:port` of an instance; None to connect directly."""
    of_environment = next((os.environ[name] for name in GRPC_VARIABLES if os.environ.get(name)), None)
    return _chosen(address.rpartition(":")[0].strip("[]"), wanted, of_environment)


def _chosen(host: str, wanted: str | None, of_environment: str | None) -> str | None:
    """Returns the proxy that was asked for, else that of the environment where it leads to the host."""
    return wanted or (None if is_loopback(host) or proxy_bypass(host) else of_environment)


def through(proxy: str | None) -> str:
    """Returns how an error names the proxy; empty without one. A password in its address stays out."""
    if proxy is None:
        return ""
    parts = urlsplit(proxy)
    return f" through the proxy {parts._replace(netloc=parts.netloc.rpartition('@')[2]).geturl()}"
