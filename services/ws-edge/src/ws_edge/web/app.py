"""The edge's ASGI application: FastAPI for calls, and beside it the sockets."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException

from ws_edge.errors import EdgeError, UnavailableError
from ws_edge.metrics import Metrics
from ws_edge.sockets.sockets import Sockets
from ws_edge.web import asyncapi
from ws_edge.web.documents import HealthDocument
from ws_edge.web.pages import pages

App = Callable[[Any, Any, Any], Awaitable[None]]

DESCRIPTION = (
    "Live state by WebSocket and REST. The gateway signs consumers in; every row is shown to its owner and to staff."
    " Sockets are described in /asyncapi.json."
)
RETRY_AFTER_S = "1"


def http_app(routers: Iterable[APIRouter], metrics: Metrics, not_ready: Callable[[], str | None]) -> FastAPI:
    """The calls. `not_ready` says why the edge should get no traffic, or None."""
    # FastAPI's own pages of the interface load their scripts from other hosts; ours is one of pages().
    app = FastAPI(title="Statecast edge", version="1", description=DESCRIPTION, docs_url=None, redoc_url=None)
    for router in routers:
        app.include_router(router)
    app.include_router(pages())

    async def healthz() -> Response:
        """Whether the process lives."""
        return JSONResponse({"status": "ok"})

    async def readyz() -> Response:
        """Whether the gateway should send traffic here."""
        reason = not_ready()
        if reason is None:
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "not ready", "reason": reason}, status_code=503)

    async def prometheus() -> Response:
        """Metrics for Prometheus."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    sockets_document = asyncapi.document()

    async def sockets_described() -> Response:
        """The sockets, for AsyncAPI."""
        return JSONResponse(sockets_document)

    app.add_api_route("/asyncapi.json", sockets_described, include_in_schema=False)
    app.add_api_route("/healthz", healthz, response_model=HealthDocument)
    app.add_api_route("/readyz", readyz, response_model=HealthDocument, responses={503: {"model": HealthDocument}})
    app.add_api_route("/metrics", prometheus, include_in_schema=False)
    app.add_exception_handler(EdgeError, _edge_error)
    app.add_exception_handler(RequestValidationError, _wrong_parameter)
    app.add_exception_handler(HTTPException, _http_error)
    return app


def edge_app(http: App, sockets: Sockets) -> App:
    """Both in one: sockets go past the HTTP framework."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (sockets if scope["type"] == "websocket" else http)(scope, receive, send)

    return app


async def _edge_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, EdgeError)  # noqa: S101  it is registered for nothing else
    headers = {"Retry-After": RETRY_AFTER_S} if error.http_status == UnavailableError.http_status else None
    return _error(error.http_status, error.code, str(error), headers)


async def _wrong_parameter(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101  as above
    first = error.errors()[0]
    return _error(422, "wrong_parameter", f"{first['loc'][-1]}: {first['msg']}")


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101  as above
    code = "not_found" if error.status_code == 404 else "refused"
    return _error(error.status_code, code, f"{request.method} {request.url.path}: {error.detail}", error.headers)


def _error(status: int, code: str, message: str, headers: Any = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status_code=status, headers=headers)
