"""The calls that are answered once: an order, a key, a range, the shard map."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from google.protobuf import json_format
from google.protobuf.message import Message

from statecast.query.v1.query_service_pb2 import ScanStatesRequest
from ws_edge.access.gateway import Caller, Gateway
from ws_edge.access.tickets import Tickets
from ws_edge.authorization import Consumer, check_key, check_row, check_staff, may_see
from ws_edge.dialects.frames import rfc3339
from ws_edge.dialects.order_frames import STORE, order_reply
from ws_edge.errors import MalformedFrameError, NoStateError, RequestError
from ws_edge.querying.query_client import QueryClient
from ws_edge.querying.questions import page, question
from ws_edge.shared.revocations import Revocations
from ws_edge.states import StoreKey, Version
from ws_edge.stores import Stores, check_key_part, find
from ws_edge.web.documents import (
    ConsumerDocument,
    EdgeDocument,
    ErrorReply,
    OrderUpdatesReply,
    PageDocument,
    ShardMapDocument,
    StateDocument,
    TicketDocument,
)
from ws_edge.web.edge_report import EdgeReport

LARGEST_PAGE = 1000
PRIVATE = "private, no-cache"
"""A copy may be kept by its owner alone, and must be checked by its ETag each time."""

Identify = Callable[[Request], Awaitable[Consumer]]
"""Tells who calls; raises HandshakeError when nobody may be named, or whose access was revoked."""

IfNoneMatch = Annotated[str | None, Header(description="The ETag of a copy; answered with 304 while it still holds.")]
SortFrom = Annotated[str, Query(alias="from", description="The lowest sort value, inclusive; empty for the first.")]
SortTo = Annotated[str, Query(alias="to", description="The sort value to stop before; empty for the last.")]
Limit = Annotated[int | None, Query(ge=1, le=LARGEST_PAGE, description="The most rows to return.")]


def failures(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The failing answers of a call, for OpenAPI."""
    return {status: {"model": ErrorReply} for status in (*statuses, 403, 422, 503)}


UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "The copy named by If-None-Match still holds."}}


class Rest:
    """Answers from the query service, as far as the consumer may see it. Every method raises EdgeError."""

    def __init__(
        self,
        client: QueryClient,
        stores: Stores,
        gateway: Gateway,
        tickets: Tickets,
        revocations: Revocations,
        page_size: int,
        report: EdgeReport,
    ) -> None:
        self._client = client
        self._revocations = revocations
        self._stores = stores
        self._gateway = gateway
        self._tickets = tickets
        self._page_size = page_size
        self._report = report

    def router(self) -> APIRouter:
        """The routes with their documentation."""
        router = APIRouter()
        one = UNCHANGED | failures(404)
        add = router.add_api_route
        add("/update/orders/{order_id}", self.get_order, response_model=OrderUpdatesReply, responses=one)
        add("/v1/consumer", self.get_consumer, response_model=ConsumerDocument, responses=failures())
        add("/v1/edge", self.get_edge, response_model=EdgeDocument, responses=failures())
        add("/v1/shards", self.list_shards, response_model=ShardMapDocument, responses=failures())
        add("/v1/stores/{store}/{key}", self.get_state, response_model=StateDocument, responses=one)
        range_path = "/v1/stores/{store}/groups/{group}"
        add(range_path, self.scan_group, response_model=PageDocument, responses=failures(400, 404))
        add("/v1/tickets", self.issue_ticket, methods=["POST"], response_model=TicketDocument, responses=failures())
        return router

    async def get_order(self, request: Request, order_id: str, if_none_match: IfNoneMatch = None) -> Response:
        """Answers once with the state of an order. Its position resumes a socket; the ETag is the same position."""
        version = await self._look_up(request, StoreKey(STORE, order_id))
        return _cacheable(version, if_none_match, order_reply(version))

    async def get_state(self, request: Request, store: str, key: str, if_none_match: IfNoneMatch = None) -> Response:
        """Answers with what a key holds, in stores with one value per group."""
        version = await self._look_up(request, StoreKey(store, key))
        return _cacheable(version, if_none_match, state_document(version))

    async def scan_group(
        self,
        request: Request,
        store: str,
        group: str,
        sort_from: SortFrom = "",
        sort_to: SortTo = "",
        limit: Limit = None,
        page_token: str = "",
        reverse: bool = False,
    ) -> Response:
        """Answers with a page of a group's rows in the order of their sort values."""
        consumer = await self.consumer(request)
        found = find(self._stores, store)
        if not found.members:
            raise MalformedFrameError(f"{store} has one value per group: read /v1/stores/{store}/{group}")
        for name, part in (("group", group), ("from", sort_from), ("to", sort_to)):
            check_key_part(name, part)
        check_key(consumer, found.rule, StoreKey(store, group))
        scan = ScanStatesRequest(store=store, group=group, sort_from=sort_from, sort_to=sort_to, reverse=reverse)
        scan.page_size, scan.page_token = limit or self._page_size, page_token
        response = await self._client.scan(found, scan)
        rows = [state_document(row) for row in page(found, group, response) if may_see(consumer, row)]
        return JSONResponse(
            {"states": rows, "next_page_token": response.next_page_token}, headers={"Cache-Control": PRIVATE}
        )

    async def get_consumer(self, request: Request) -> Response:
        """Answers with who is signed in."""
        consumer = await self.consumer(request)
        document = {"id": consumer.id, "name": consumer.name, "staff": consumer.staff}
        return JSONResponse(document, headers={"Cache-Control": PRIVATE})

    async def get_edge(self, request: Request) -> Response:
        """Answers staff with what this edge is doing. The gateway balances: ask again to hear of other edges."""
        check_staff(await self.consumer(request), "the report of an edge")
        return JSONResponse(self._report.document(), headers={"Cache-Control": "no-store"})

    async def list_shards(self, request: Request) -> Response:
        """Answers staff with the stores, their partitions, who serves them, and how far each replica is."""
        check_staff(await self.consumer(request), "the shard map")
        shards = await self._client.list_shards()
        return JSONResponse(_document(shards))

    async def issue_ticket(self, request: Request) -> Response:
        """Answers with a ticket for the credential of this call: it renews an open socket, or opens a browser's."""
        caller = await self.caller(request)
        expires_at = caller.credential.expires_at
        document = {"ticket": self._tickets.issue(caller)}
        if expires_at is not None:
            document["expires_at"] = rfc3339(int(expires_at * 1e9))
        return JSONResponse(document, headers={"Cache-Control": "no-store"})

    async def caller(self, request: Request) -> Caller:
        """Who calls. Raises HandshakeError when nobody may be named, or whose access was revoked."""
        caller = self._gateway.caller(request.scope)
        await self._revocations.check(caller)
        return caller

    async def consumer(self, request: Request) -> Consumer:
        """As `caller`, without what was shown."""
        return (await self.caller(request)).consumer

    async def _look_up(self, request: Request, key: StoreKey) -> Version:
        consumer = await self.consumer(request)
        store = find(self._stores, key.store)
        store.check_key(key)
        check_key(consumer, store.rule, key)
        (answer,) = await self._client.ask(store, [question(key)])
        if isinstance(answer, RequestError):
            raise answer
        if not isinstance(answer, Version) or answer.row is None:
            gone = "was deleted" if isinstance(answer, Version) and answer.deleted else "is not known"
            raise NoStateError(f"{key} {gone}")
        check_row(consumer, answer)
        return answer


def state_document(version: Version) -> dict[str, Any]:
    """One row as a StateDocument."""
    key = version.key
    document: dict[str, Any] = {
        "key": {"group": key.group} | ({"sort": key.sort, "member": key.member} if key.member else {}),
        "position": {"epoch": str(version.position.epoch), "offset": str(version.position.offset)},
    }
    if version.commit_ns is not None:
        document["commit_time"] = rfc3339(version.commit_ns)
    return document | {"row": _document(version.row)}


def _document(message: Message) -> dict[str, Any]:
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )


def _cacheable(version: Version, if_none_match: str | None, document: dict[str, Any]) -> Response:
    etag = f'"{version.position.epoch}-{version.position.offset}"'
    headers = {"ETag": etag, "Cache-Control": PRIVATE}
    known = {tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")}
    if etag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return JSONResponse(document, headers=headers)
