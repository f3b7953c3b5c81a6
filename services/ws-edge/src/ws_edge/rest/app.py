"""The edge's ASGI application: FastAPI for calls and pages, and the sockets beside it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException

from statecast_service.health import health_answer
from statecast_service.settings import suggest
from ws_edge.auth.gateway import check_request
from ws_edge.errors import EdgeError, UnavailableError
from ws_edge.metrics import Metrics
from ws_edge.rest.caching import NOT_KEPT
from ws_edge.rest.messages import failure
from ws_edge.rest.openapi import calls_document, sockets_document
from ws_edge.session.sockets import Sockets

App = Callable[[Any, Any, Any], Awaitable[None]]

DESCRIPTION = (
    "Live state by WebSocket and REST. The gateway signs consumers in; every row is shown to its owner and to staff."
    " Sockets are described in /asyncapi.json."
)


def http_app(routers: Iterable[APIRouter], metrics: Metrics, not_ready: Callable[[], str | None]) -> FastAPI:
    """The calls. `not_ready` returns why the edge should get no traffic, or None."""
    # FastAPI's own pages of the interface load scripts from other hosts; docs.html does not.
    pages: dict[str, Any] = {"docs_url": None, "redoc_url": None}
    checks = [Depends(_check_parameters)]
    app = FastAPI(title="Statecast edge", version="1", description=DESCRIPTION, dependencies=checks, **pages)
    for router in routers:
        app.include_router(router)

    @app.get("/healthz", response_class=PlainTextResponse)
    async def healthz() -> Response:
        """Whether the process lives."""
        return _health(None)

    @app.get("/readyz", response_class=PlainTextResponse, responses={503: {"description": "Not ready."}})
    async def readyz() -> Response:
        """Whether the gateway should send traffic here."""
        return _health(not_ready())

    @app.get("/metrics", include_in_schema=False)
    async def prometheus() -> Response:
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)

    sockets_described = sockets_document()

    @app.get("/asyncapi.json", include_in_schema=False)
    async def asyncapi() -> Response:
        return JSONResponse(sockets_described)

    calls_described = calls_document(app)
    app.openapi = lambda: calls_described  # type: ignore[method-assign]  # as FastAPI's documentation has it

    app.exception_handler(EdgeError)(_edge_error)
    app.exception_handler(RequestValidationError)(_wrong_parameter)
    app.exception_handler(HTTPException)(_http_error)
    return app


def edge_app(http: App, sockets: Sockets) -> App:
    """Calls and sockets in one application; sockets bypass the HTTP framework.

    Nobody may keep an answer that does not say so.
    """

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await sockets(scope, receive, send)
            return

        async def send_marked(event: MutableMapping[str, Any]) -> None:
            if event["type"] == "http.response.start":
                MutableHeaders(scope=event).setdefault("Cache-Control", NOT_KEPT)
            await send(event)

        try:
            check_request(scope)
        except EdgeError as error:
            await failure(error.http_status, error.code, str(error))(scope, receive, send_marked)
        else:
            await http(scope, receive, send_marked)

    return app


def _health(reason: str | None) -> Response:
    answer = health_answer(reason)
    return Response(answer.body, answer.status, media_type=answer.content_type)


async def _check_parameters(request: Request) -> None:
    """Raises RequestValidationError for a parameter that a call of `/v1` would ignore, or take one of two."""
    path, method = request.scope["route"].path_format, request.method
    if not path.startswith("/v1/"):
        return  # the facade of orders, pages and probes
    parameters = request.app.openapi()["paths"][path][method.lower()].get("parameters", ())
    known = {each["name"]: each["schema"] for each in parameters if each["in"] == "query"}
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known:
            text = f"{method} {path} takes no such parameter; {suggest(name[:80], known)}"
        elif count > 1 and known[name].get("type") != "array":
            text = "it is there twice: send it once"
        else:
            continue
        raise RequestValidationError([{"loc": ("query", name[:80]), "msg": text}])


async def _edge_error(_: Request, error: EdgeError) -> Response:
    headers = {"Retry-After": "1"} if error.http_status == UnavailableError.http_status else None
    return failure(error.http_status, error.code, str(error), headers)


async def _wrong_parameter(_: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    return failure(422, "wrong_parameter", f"{first['loc'][-1]}: {first['msg']}")


async def _http_error(request: Request, error: HTTPException) -> Response:
    code = "not_found" if error.status_code == 404 else "refused"
    return failure(error.status_code, code, f"{request.method} {request.url.path}: {error.detail}", error.headers)
