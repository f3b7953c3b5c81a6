"""The credentials of a live connection, and the tickets that renew it while it is open."""

import asyncio
import json
import ssl
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Literal, TypeAlias
from urllib.error import HTTPError
from urllib.parse import urljoin
from urllib.request import HTTPRedirectHandler, HTTPSHandler, ProxyHandler, Request, build_opener

from statecast_client.proxies import proxy_of
from statecast_client.push.protocol import PushError, PushRefusedError

Need = Literal["connect", "expiring", "expired"]
"""Why credentials are asked for: to connect, to renew an open connection in time, or because the last ones ended."""

Headers: TypeAlias = Mapping[str, str]
Credentials: TypeAlias = Headers | Callable[[Need], Headers | Awaitable[Headers]]
"""HTTP headers, for example `{"apikey": KEY}`, or a function that returns them, asynchronously or not."""

TIMEOUT_S = 10.0
RENEWED_AT = 0.8
"""The share of the remaining time after which access is renewed, …"""
MAX_AHEAD_S = 300.0
"""… but not more than so many seconds ahead, …"""
MIN_PAUSE_S = 1.0
"""… and not more often than this, whatever the clocks say."""


class _NoRedirects(HTTPRedirectHandler):
    """Takes a redirect for a refusal: another address must not see the credentials."""

    def redirect_request(self, *_: object) -> None:
        return None


class Access:
    """Asks for credentials when they are needed."""

    def __init__(self, credentials: Credentials, tls: ssl.SSLContext | None, proxy: str | None = None) -> None:
        """`proxy` is the one to connect through; None takes that of the environment, or none to this machine."""
        self._credentials = credentials
        self._proxy = proxy
        self.tls = tls
        self.renewable = callable(credentials)
        """Whether newer credentials can be had."""

    def proxy_of(self, address: str) -> str | None:
        """Returns the proxy to an address; None to connect directly."""
        return proxy_of(address, self._proxy)

    async def headers(self, need: Need) -> Headers:
        """Returns the credentials. Raises the errors of their function."""
        if not callable(self._credentials):
            return self._credentials
        headers = self._credentials(need)
        return await headers if isawaitable(headers) else headers

    async def ticket(self, address: str) -> str:
        """Gets newer credentials, and for them a ticket from the `/v1/tickets` beside the socket at `address`.

        Raises PushRefusedError when they are refused, OSError when nobody answers, and the errors of their function.
        """
        headers = await self.headers("expiring")
        url = urljoin(address, "tickets").replace("ws", "http", 1)
        return await asyncio.to_thread(self._post, url, headers)

    def _post(self, url: str, headers: Headers) -> str:
        request = Request(url, data=b"", headers=dict(headers), method="POST")  # noqa: S310  the client checks addresses
        proxy = self.proxy_of(url)
        proxies = ProxyHandler({} if proxy is None else dict.fromkeys(("http", "https"), proxy))
        try:
            opener = build_opener(proxies, HTTPSHandler(context=self.tls), _NoRedirects)
            with opener.open(request, timeout=TIMEOUT_S) as answer:
                return str(json.load(answer)["ticket"])
        except HTTPError as refusal:
            with refusal:
                raise PushRefusedError(str(refusal.code), f"{url} answers {refusal.code} {refusal.reason}") from refusal
        except (ValueError, KeyError, TypeError) as error:
            raise PushError(f"{url} does not answer as ws-edge does: {error!r}") from error


def renewal_pause(left_s: float) -> float:
    """Returns how many seconds to wait before access that ends in `left_s` is renewed."""
    return max(MIN_PAUSE_S, left_s * RENEWED_AT, left_s - MAX_AHEAD_S)
