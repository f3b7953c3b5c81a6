"""The calls that read once: an order, a key, a range; who is signed in, and tickets. int64 fields are strings."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from google.protobuf import json_format
from google.protobuf.message import Message
from google.protobuf.struct_pb2 import Value
from pydantic import BaseModel, Field, field_validator

from statecast.json_documents import document_of
from ws_edge.auth.gateway import Caller, Gateway, Tickets
from ws_edge.auth.page_tokens import PageTokens
from ws_edge.channels.revocations import Revocations
from ws_edge.codec.bodies import rfc3339
from ws_edge.codec.order_codec import STORE, order_reply
from ws_edge.errors import EdgeError, MalformedFrameError, NoStateError, UnreadableRowError
from ws_edge.http.caching import PublicCaching, conditional, key_etag, page_etag
from ws_edge.http.paths import KeyPart
from ws_edge.model.authorization import Consumer, check_key, may_see, seen_by
from ws_edge.model.states import KeyState, Position, StoreKey
from ws_edge.model.stores import Store, Stores, check_key_part, find
from ws_edge.upstream.queries import Scan
from ws_edge.upstream.query_client import QueryClient

SURROGATE = re.compile("[\ud800-\udfff]")
MAX_PAGE = 1000
ROWS_AT_ONCE = 50
"""Rows that are written before sockets have their turn: about 3 ms."""

Responses = dict[int | str, dict[str, Any]]
"""Answers of a call besides the one with its model, for OpenAPI."""

Identify = Callable[[Request], Awaitable[Consumer]]
"""Returns the calling consumer; raises HandshakeError when there is none, or when its access was revoked."""

IfNoneMatch = Annotated[str | None, Header(description="The ETag of a copy; answered with 304 while it still holds.")]
SortFrom = Annotated[str, Query(alias="from", description="The lowest sort value, inclusive; empty for the first.")]
SortTo = Annotated[str, Query(alias="to", description="The sort value to stop before; empty for the last.")]
GroupFrom = Annotated[str, Query(description="The lowest group, inclusive; empty for the first.")]
GroupTo = Annotated[str, Query(description="The group to stop before; empty for the last.")]
Limit = Annotated[int | None, Query(ge=1, le=MAX_PAGE, description="The most rows to return.")]


class Document(BaseModel, extra="forbid"):
    """What all have in common: nothing but what is described may stand in them, and texts are Unicode."""

    @field_validator("*")
    @classmethod
    def _check_text(cls, value: Any) -> Any:
        """Refuses a lone surrogate, which JSON can escape but no key and no record can hold."""
        if isinstance(value, str) and SURROGATE.search(value):
            raise ValueError("it has half of a character: send both escapes of a surrogate pair")
        return value


class ErrorBody(Document):
    """Why a call failed."""

    code: str = Field(description="A stable word for programs.", examples=["forbidden"])
    message: str = Field(description="What is wrong and what to do about it, for people.")


class ErrorReply(Document):
    """The body of every failed call."""

    error: ErrorBody


class PositionDocument(Document):
    """How far a key has been read; pass it back on a socket to be told only what is newer."""

    epoch: str = Field(examples=["4611686018427387904"])
    offset: str = Field(examples=["1042"])


class OrderStatusDocument(Document):
    """An order as customers see it; fields that are not known yet are empty."""

    order_id: str = Field(examples=["order-000001"])
    status: str = Field(description="Placed, Paid, Packed, Shipped, Delivered or Cancelled.", examples=["Shipped"])
    estimated_delivery: str = Field(description="RFC 3339 full-date, or empty.", examples=["2024-08-28"])
    tracking_number: str = Field(examples=["1Z999AA10123456784"])


class OrderUpdatesReply(Document):
    """One answer: the same document as a frame of the socket."""

    type: Literal["order_status_update"]
    data: OrderStatusDocument
    position: PositionDocument
    commit_time: str | None = Field(None, description="When the change was committed, RFC 3339. Absent when unknown.")
    lag_ms: str | None = Field(None, description="For how long it may have been out of date. Absent when not for long.")


class KeyDocument(Document):
    """The key of a row; sort and member are absent in stores with one value per group."""

    group: str = Field(examples=["customer-0001"])
    sort: str | None = Field(None, examples=["2024-08-28T12:34:56.123456Z"])
    member: str | None = Field(None, examples=["order-000001"])


class StateDocument(Document):
    """One row of a store."""

    key: KeyDocument
    position: PositionDocument
    commit_time: str | None = Field(None, description="When the change was committed, RFC 3339. Absent when unknown.")
    lag_ms: str | None = Field(None, description="For how long it may have been out of date. Absent when not for long.")
    row: Any = Field(description="The row in proto3 JSON, in the message of the store; of a store of JSON its value.")


class RowErrorDocument(ErrorReply):
    """Why a row cannot be shown."""

    key: KeyDocument


class PageDocument(Document):
    """A page of rows, in the order of their keys. It may have few rows, or none, and still a next one."""

    states: list[StateDocument]
    errors: list[RowErrorDocument] | None = Field(None, description="Rows that cannot be read. Absent without any.")
    next_page_token: str = Field(description="Pass it back as page_token; empty after the last page.")
    through: PositionDocument | None = Field(
        None,
        description="Of a page that holds all of a group: pass it as `after` of `watch_range`, to be told only news.",
    )
    lag_ms: str | None = Field(None, description="For how long it may have been out of date. Absent when not for long.")


class ConsumerDocument(Document):
    """Who the gateway says is asking."""

    id: str = Field(description="The customer whose rows may be seen; empty for staff without one.")
    name: str
    staff: bool = Field(description="Whether every row may be seen.")


class TicketDocument(Document):
    """A ticket for the credential of the call."""

    ticket: str = Field(description="Send it soon, and once: in a frame `auth_refresh`, or to `/v1/tickets/stream`.")
    expires_at: str | None = Field(
        None,
        description="When the credential of the call expires, RFC 3339; left out when it never does.",
        examples=["2024-08-28T12:34:56Z"],
    )


COPIED: Responses = {304: {"description": "The copy named by If-None-Match still holds."}}
"""The answer to a caller whose copy still holds, for OpenAPI."""


def failures(*statuses: int) -> Responses:
    """The error answers of a call, for OpenAPI."""
    return {status: {"model": ErrorReply} for status in (*statuses, 403, 422, 503)}


@dataclass(frozen=True)
class Rest:
    """Answers from the query service, as far as the consumer may see it. Every method raises EdgeError."""

    client: QueryClient
    stores: Stores
    gateway: Gateway
    tickets: Tickets
    revocations: Revocations
    page_tokens: PageTokens
    page_size: int
    caching: PublicCaching

    def router(self) -> APIRouter:
        router = APIRouter(responses=failures())
        one, page = COPIED | failures(404), COPIED | failures(400, 404)
        for method, path, call, model, responses in (
            ("GET", "/update/orders/{order_id}", self.get_order, OrderUpdatesReply, one),
            ("GET", "/v1/consumer", self.get_consumer, ConsumerDocument, None),
            ("GET", "/v1/stores/{store}/{key}", self.get_state, StateDocument, one),
            ("GET", "/v1/stores/{store}/groups/{group}", self.scan_group, PageDocument, page),
            ("POST", "/v1/tickets", self.issue_ticket, TicketDocument, None),
        ):
            router.add_api_route(path, call, methods=[method], response_model=model, responses=responses)
        return router

    async def get_order(self, request: Request, order_id: KeyPart, if_none_match: IfNoneMatch = None) -> Response:
        """Answers once with the state of an order. Its position resumes a socket; the ETag is the same position."""
        store, state = await self._look_up(request, StoreKey(STORE, order_id))
        return await self._one(store, state, if_none_match, order_reply)

    async def get_state(
        self, request: Request, store: str, key: KeyPart, if_none_match: IfNoneMatch = None
    ) -> Response:
        """Answers with what a key holds, in stores with one value per group."""
        definition, state = await self._look_up(request, StoreKey(store, key))
        return await self._one(definition, state, if_none_match, state_document)

    async def scan_group(
        self,
        request: Request,
        store: str,
        group: KeyPart,
        sort_from: SortFrom = "",
        sort_to: SortTo = "",
        limit: Limit = None,
        page_token: str = "",
        reverse: bool = False,
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Answers with a page of a group's rows in the order of their sort values."""
        consumer = await self.consumer(request)
        definition = find(self.stores, store)
        if not definition.members:
            raise MalformedFrameError(f"{store} has one value per group: read /v1/stores/{store}/{group}")
        for name, part in (("group", group), ("from", sort_from), ("to", sort_to)):
            check_key_part(name, part)
        check_key(consumer, definition.rule, StoreKey(store, group))
        token = self.page_tokens.open(page_token)
        scan = Scan(group, sort_from, sort_to, reverse, limit or self.page_size, token)
        page = await self.client.scan(definition, scan)
        rows = [seen_by(consumer, row) for row in page.states if may_see(consumer, row)]
        next_token = self.page_tokens.seal(page.next_page_token)
        is_whole = not (page_token or next_token)

        through = {"through": position_document(page.position)} if is_whole else {}
        more = {"next_page_token": next_token, **through, **lag_document(page.lag_ms)}
        body = partial(page_body, rows, more)
        control = self.caching.control(definition, page.lag_ms)
        return await conditional(body, page_etag(rows, not next_token), control, if_none_match, page.lag_ms)

    async def get_consumer(self, request: Request) -> Response:
        """Answers with who is signed in."""
        return JSONResponse(asdict(await self.consumer(request)))

    async def issue_ticket(self, request: Request) -> Response:
        """Answers with a ticket for the credential of this call: it renews an open socket, or opens a browser's."""
        caller = await self.caller(request)
        expires_at = caller.credential.expires_at
        document = {"ticket": self.tickets.issue(caller)}
        if expires_at is not None:
            document["expires_at"] = rfc3339(int(expires_at * 1e9))
        return JSONResponse(document)

    async def caller(self, request: Request) -> Caller:
        """Returns the caller. Raises HandshakeError when there is none, or when its access was revoked."""
        caller = self.gateway.caller(request.scope)
        await self.revocations.check(caller)
        return caller

    async def consumer(self, request: Request) -> Consumer:
        """Returns the caller's consumer; raises as `caller`."""
        return (await self.caller(request)).consumer

    async def _one(
        self, store: Store, state: KeyState, if_none_match: str | None, form: Callable[[KeyState], dict[str, Any]]
    ) -> Response:
        async def body() -> str:
            return json_text(form(state))

        control = self.caching.control(store, state.lag_ms)
        return await conditional(body, key_etag(state), control, if_none_match, state.lag_ms)

    async def _look_up(self, request: Request, key: StoreKey) -> tuple[Store, KeyState]:
        consumer = await self.consumer(request)
        store = find(self.stores, key.store)
        store.check(key)
        check_key(consumer, store.rule, key)
        answer = await self.client.get(store, key)
        if answer.row is None or not may_see(consumer, answer):
            raise NoStateError(_absence(consumer, store, answer))
        answer.check_readable()
        return store, seen_by(consumer, answer)


def _absence(consumer: Consumer, store: Store, state: KeyState) -> str:
    """Says that a key has no row. Where rows have owners, one text must do for all that an owner alone may know."""
    if not store.rule.shows_all(consumer):
        return f"there is no row of yours at {state.key}"
    return f"{state.key} {'was deleted' if state.deleted else 'is not known'}"


async def page_body(states: Sequence[KeyState], more: Mapping[str, Any]) -> str:
    """Returns a PageDocument with these rows, or their errors, and `more` fields, in JSON.

    Each row is written once, and others have their turns meanwhile.
    """
    rows, errors = list[str](), list[dict[str, Any]]()
    for number, state in enumerate(states, 1):
        if number % ROWS_AT_ONCE == 0:
            await asyncio.sleep(0)
        try:
            rows.append(json_text(state_document(state)))
        except UnreadableRowError as error:
            errors.append({"key": key_document(state.key), **error_document(error)})
    rest = json_text({"errors": errors, **more} if errors else more)
    return f'{{"states":[{",".join(rows)}],{rest[1:]}'


def json_text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def key_document(key: StoreKey) -> dict[str, str]:
    return {"group": key.group} | ({"sort": key.sort, "member": key.member} if key.member else {})


def error_document(error: EdgeError) -> dict[str, Any]:
    """An ErrorReply."""
    return {"error": {"code": error.code, "message": str(error)}}


def state_document(state: KeyState) -> dict[str, Any]:
    """A StateDocument. Raises UnreadableRowError."""
    state.check_readable()
    document: dict[str, Any] = {"key": key_document(state.key), "position": position_document(state.position)}
    if state.commit_ns is not None:
        document["commit_time"] = rfc3339(state.commit_ns)
    return document | lag_document(state.lag_ms) | {"row": row_document(state.row)}


def position_document(position: Position) -> dict[str, str]:
    return {"epoch": str(position.epoch), "offset": str(position.offset)}


def lag_document(lag_ms: int) -> dict[str, str]:
    """The field `lag_ms`, where there is a lag to tell."""
    return {"lag_ms": str(lag_ms)} if lag_ms else {}


def row_document(row: Message) -> Any:
    """A row as JSON: that of a store of JSON is the document itself."""
    return document_of(row) if isinstance(row, Value) else message_document(row)


def message_document(message: Message) -> dict[str, Any]:
    """A message of the contract as proto3 JSON, with the contract's field names."""
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )
