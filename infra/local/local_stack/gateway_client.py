"""Talks to the gateway as one demo user: HTTPS and WebSocket, trusting the local authority only."""

import json
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import websockets
from websockets.asyncio.client import ClientConnection, connect

from local_stack.gateway import authorization
from local_stack.stack_file import Credentials, Stack


class GatewayClient:
    """One user at the gateway of a stack. Close it with `async with`."""

    def __init__(self, stack: Stack, user: Credentials) -> None:
        self._gateway = stack.gateway
        self._headers = authorization(user)
        self._trust = ssl.create_default_context(cafile=stack.gateway.ca_certificate)
        self._http = httpx.AsyncClient(
            base_url=stack.gateway.https, headers=self._headers, verify=self._trust, trust_env=False
        )

    async def __aenter__(self) -> "GatewayClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **parameters: str) -> Mapping[str, Any]:
        """The JSON answer to a GET. Raises httpx.HTTPError when there is none or its status is not 2xx."""
        answer = await self._http.get(path, params=parameters)
        answer.raise_for_status()
        body: Mapping[str, Any] = answer.json()
        return body

    @asynccontextmanager
    async def order_updates(self) -> AsyncIterator[ClientConnection]:
        """Opens the socket for order updates. Raises OSError or websockets.WebSocketException when it cannot."""
        url = f"{self._gateway.wss}/update/orders"
        async with connect(url, additional_headers=self._headers, ssl=self._trust, proxy=None) as socket:
            yield socket


async def watch_order(socket: ClientConnection, order_id: str, interval_ms: int, position: object) -> None:
    """Asks for the updates of an order, only newer ones when a `position` is given."""
    request: dict[str, object] = {
        "type": "order_updates_request",
        "order_id": order_id,
        "interval_ms": interval_ms,
    }
    if position:
        request["position"] = position
    await socket.send(json.dumps(request))


UNREACHABLE = (OSError, httpx.HTTPError, websockets.WebSocketException)
"""What a gateway or edge that is being started again raises."""
