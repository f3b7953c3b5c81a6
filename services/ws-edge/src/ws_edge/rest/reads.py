"""The calls that read once: rows, an order, the stores, the signed-in consumer, and tickets."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from statecast.push.v2.calls_pb2 import Consumer as ConsumerReply
from statecast.push.v2.calls_pb2 import ReadableStore, ReadableStores
from statecast.push.v2.order_updates_pb2 import OrderUpdatesReply
from statecast.push.v2.push_pb2 import Page, Ticket, Watch
from ws_edge.auth.gateway import Caller, Gateway
from ws_edge.auth.tickets import Seal, Tickets
from ws_edge.channels.revocations import Revocations
from ws_edge.codec.bodies import json_bytes
from ws_edge.codec.requests import fields_of, watch_request
from ws_edge.errors import MalformedFrameError, NoStateError
from ws_edge.model.authorization import Consumer, check_all_rows, may_see, seen_by
from ws_edge.model.questions import Question, check_bounds
from ws_edge.model.stores import Store, Stores, check_key_part, find, readable
from ws_edge.order_updates import STORE, order_reply
from ws_edge.rest.caching import PublicCaching
from ws_edge.rest.messages import answer
from ws_edge.rest.openapi import answers
from ws_edge.rest.row_pages import RowPage, page_body
from ws_edge.upstream.queries import Page as ScannedPage
from ws_edge.upstream.queries import Scan
from ws_edge.upstream.query_client import QueryClient
from ws_edge.watches.token import mask_of, token_of

MAX_PAGE = 1000
COPIED = {304: {"description": "The copy named by If-None-Match still holds, or is newer than what can be read now."}}

Identify = Callable[[Request], Awaitable[Consumer]]
"""Returns the calling consumer; raises HandshakeError when there is none, or when its access was revoked."""

Part = Annotated[str, Query(description="As in Watch.")]
Limit = Annotated[int, Query(ge=0, le=MAX_PAGE, description="The most rows of a page; 0 takes the server's default.")]
Group = Annotated[
    str | None, Query(description="The group; absent reads all groups of a store that one may see all of.")
]
Fields = Annotated[list[str], Query(description="The fields of a row to be told; absent takes all.")]
GroupFrom = Annotated[str, Query(description="Without `group`: the lowest group, inclusive; empty for the first.")]
GroupTo = Annotated[str, Query(description="Without `group`: the group to stop before; empty for the last.")]
PageToken = Annotated[str, Query(description="`next_page_token` of the page before.")]
IfNoneMatch = Annotated[str | None, Header(description="The ETag of a copy: 304 while no row is newer.")]


@dataclass(frozen=True)
class Reads:
    """Answers from the query service with the rows that the consumer may see. Every method raises EdgeError."""

    client: QueryClient
    stores: Stores
    gateway: Gateway
    tickets: Tickets
    revocations: Revocations
    page_tokens: Seal
    """Seals the page tokens of the query service, as they name a row, which may be hidden from the caller."""
    page_size: int
    caching: PublicCaching

    def router(self) -> APIRouter:
        router = APIRouter()
        for method, path, call, responses in (
            ("GET", "/update/orders/{order_id:path}", self.get_order, COPIED | answers(OrderUpdatesReply, 404)),
            ("GET", "/v1/consumer", self.get_consumer, answers(ConsumerReply)),
            ("GET", "/v1/stores", self.list_stores, answers(ReadableStores)),
            ("GET", "/v1/stores/{store}/rows", self.read_rows, COPIED | answers(Page, 400, 404)),
            ("POST", "/v1/tickets", self.issue_ticket, answers(Ticket)),
        ):
            router.add_api_route(path, call, methods=[method], responses=responses)
        return router

    async def get_order(self, request: Request, order_id: str, if_none_match: IfNoneMatch = None) -> Response:
        """Answers with the state of an order, in the form of its socket."""
        consumer = await self.consumer(request)
        question = Question(find(self.stores, consumer, STORE), order_id)
        question.check()
        page = await self._of_group(consumer, question)

        async def body() -> bytes:
            if not page.rows:
                raise NoStateError(f"there is no order {order_id} of yours")
            [state] = page.rows
            state.check_readable()
            times = question.store.shows_changes(consumer)
            return json_bytes(order_reply(state, times) | {"token": page.token})

        return await self.caching.answer(question.store, page, body, if_none_match)

    async def read_rows(
        self,
        request: Request,
        store: str,
        group: Group = None,
        sort_from: Part = "",
        sort_to: Part = "",
        limit: Limit = 0,
        reverse: bool = False,
        fields: Fields = [],  # noqa: B006  FastAPI copies it
        group_from: GroupFrom = "",
        group_to: GroupTo = "",
        page_token: PageToken = "",
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Answers with a page of rows. Rows that are absent, deleted or hidden from the caller are left out.

        Without `group`, rows are in the order of group, sort value and key, and name their group. A row that keeps its
        key from the first page to the last is on exactly one page, once.
        """
        consumer = await self.consumer(request)
        definition, size = find(self.stores, consumer, store), limit or self.page_size
        if group is None:
            names = fields_of(definition, fields)
            scan = Scan("", sort_from, sort_to, reverse, size, "", group_from, group_to)
            page = await self._of_all_groups(consumer, definition, scan, names, page_token)
        elif group_from or group_to:
            raise MalformedFrameError("group_from and group_to are for pages of all groups: leave them or group out")
        else:
            asked = watch_request(
                Watch(
                    store=store,
                    group=group,
                    sort_from=sort_from,
                    sort_to=sort_to,
                    limit=size,
                    reverse=reverse,
                    fields=fields,
                ),
                partial(find, self.stores, consumer),
            )
            page = await self._of_group(consumer, asked.question, asked.fields, page_token)
        return await self.caching.answer(definition, page, partial(page_body, page), if_none_match)

    async def _of_all_groups(
        self, consumer: Consumer, store: Store, scan: Scan, fields: tuple[str, ...], page_token: str
    ) -> RowPage:
        check_all_rows(consumer, store.rule, store.name)
        for name in ("group_from", "group_to", "sort_from", "sort_to"):
            check_key_part(name, getattr(scan, name))
        check_bounds(store, sort_from=scan.sort_from, sort_to=scan.sort_to)
        page = await self._scan(store, scan, page_token)
        rows = [seen_by(consumer, row) for row in page.states]
        return RowPage(rows, fields, page.next_page_token, page.lag_ms, names_group=True)

    async def _of_group(
        self, consumer: Consumer, question: Question, fields: tuple[str, ...] = (), page_token: str = ""
    ) -> RowPage:
        store = question.store
        question.check_group(consumer)
        page = await (self.client.get(question) if question.is_key else self._range(consumer, question, page_token))
        rows = [seen_by(consumer, row) for row in page.states if may_see(consumer, row)]
        is_whole = not page_token and not page.next_page_token
        # The position of a hidden row would show that there is one, and that of others when a private field changes.
        position = page.position if rows and store.shows_changes(consumer) else page.through
        token = token_of(mask_of(question, fields, consumer), position) if is_whole else ""
        return RowPage(rows, fields, page.next_page_token, page.lag_ms, token, position=position, through=page.through)

    async def _range(self, consumer: Consumer, question: Question, page_token: str) -> ScannedPage:
        """Reads a page with as many rows as may be shown, whatever lies between them (ADR 0076)."""
        bounds = question.sort_from, question.sort_to, question.reverse
        searched = question.searched_for(consumer)
        page = await self._scan(question.store, Scan(question.group, *bounds, searched.limit), page_token)
        if searched == question:
            return page
        shown = [number for number, row in enumerate(page.states, 1) if may_see(consumer, row)]
        if len(shown) <= question.limit:
            return page
        size = shown[question.limit - 1]
        return await self._scan(question.store, Scan(question.group, *bounds, size), page_token)

    async def _scan(self, store: Store, scan: Scan, page_token: str) -> ScannedPage:
        opened = self.page_tokens.open(page_token) if page_token else ""
        if opened is None:
            raise MalformedFrameError("page_token is not one of ours: pass back next_page_token, whole")
        page = await self.client.scan(store, scan._replace(page_token=opened))
        return page._replace(next_page_token=page.next_page_token and self.page_tokens.seal(page.next_page_token))

    async def get_consumer(self, request: Request) -> Response:
        """Answers with the signed-in consumer."""
        consumer = await self.consumer(request)
        return answer(ConsumerReply(id=consumer.id, name=consumer.name, staff=consumer.staff))

    async def list_stores(self, request: Request) -> Response:
        """Answers with the stores that the caller may read: all for staff, else those that can have rows for them."""
        consumer = await self.consumer(request)
        return answer(ReadableStores(stores=map(_readable_store, readable(self.stores, consumer))))

    async def issue_ticket(self, request: Request) -> Response:
        """Answers with a ticket for the credential of this call: it renews an open socket, or opens a browser's."""
        ticket = self.tickets.issue(await self.caller(request))
        return answer(Ticket(ticket=ticket, expires_in_s=int(self.tickets.lifetime_s)))

    async def caller(self, request: Request) -> Caller:
        """Returns the caller. Raises HandshakeError when there is none, or when its access was revoked."""
        caller = self.gateway.caller(request.scope)
        await self.revocations.check(caller)
        return caller

    async def consumer(self, request: Request) -> Consumer:
        """Returns the caller's consumer; raises as `caller`."""
        return (await self.caller(request)).consumer


def _readable_store(store: Store) -> ReadableStore:
    rule = store.rule
    readers = "owner" if rule.field is not None else "everyone" if rule.everyone else "staff"
    return ReadableStore(
        store=store.name,
        message=store.kind,
        description=store.description or "",
        keeps="members" if store.members else "one",
        readers=readers,
        owner_field=rule.field or "",
        group_is_owner=rule.field is not None and rule.group,
    )
