"""Upstreams for the checks of a gateway: real servers that echo each request to the client."""

import asyncio
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


class EchoUpstream:
    """Answers every request, and opens every socket, with the request as it arrived; echoes messages on a socket.

    `?delay=2` delays an answer by two seconds.
    """

    def __init__(self, name: str, address: str) -> None:
        """`name` stands in every answer; `address` is the host:port to listen on."""
        self.name = name
        self.ready = True
        self.host, _, port = address.rpartition(":")
        self.port = int(port)
        routes = [
            Route("/readyz", self._readyz),
            Route("/{path:path}", self._echo, methods=["GET", "POST", "PUT", "DELETE", "PATCH"]),
            WebSocketRoute("/{path:path}", self._repeat),
        ]
        self._app = Starlette(routes=routes)
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    def start(self) -> None:
        """Listens until `stop`."""
        config = uvicorn.Config(
            self._app,
            host=self.host,
            port=self.port,
            ws="websockets-sansio",
            log_config=None,
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Closes the sockets and stops listening; `start` may be called again."""
        if self._server and self._thread:
            self._server.should_exit = True
            self._thread.join()

    async def _readyz(self, _request: Request) -> Response:
        return Response(status_code=200 if self.ready else 503)

    async def _echo(self, request: Request) -> Response:
        await asyncio.sleep(float(request.query_params.get("delay", 0)))
        arrived = self._described(request) | {"method": request.method, "body": len(await request.body())}
        return JSONResponse(arrived)

    async def _repeat(self, socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_json(self._described(socket))
        try:
            while True:
                await socket.send_text(await socket.receive_text())
        except WebSocketDisconnect:
            return

    def _described(self, request: Request | WebSocket) -> dict[str, Any]:
        return {
            "upstream": self.name,
            "path": request.url.path,
            "query": request.url.query,
            "headers": dict(request.headers),
        }
