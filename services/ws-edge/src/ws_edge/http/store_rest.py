"""Rows of many groups, a page at a time, for staff, and of stores that everyone may read for everybody."""

from dataclasses import dataclass
from functools import partial

from fastapi import APIRouter, Request, Response

from ws_edge.auth.page_tokens import PageTokens
from ws_edge.errors import MalformedFrameError
from ws_edge.http.caching import PublicCaching, conditional, page_etag
from ws_edge.http.rest import (
    COPIED,
    GroupFrom,
    GroupTo,
    Identify,
    IfNoneMatch,
    Limit,
    PageDocument,
    SortFrom,
    SortTo,
    failures,
    lag_document,
    page_body,
)
from ws_edge.model.authorization import check_all_rows, seen_by
from ws_edge.model.stores import Stores, check_key_part, find
from ws_edge.upstream.queries import Scan
from ws_edge.upstream.query_client import QueryClient


@dataclass(frozen=True)
class StoreRest:
    """Answers those who may see every row of a store, and raises ForbiddenError for others. Raises EdgeError."""

    client: QueryClient
    stores: Stores
    identify: Identify
    page_tokens: PageTokens
    page_size: int
    caching: PublicCaching

    def router(self) -> APIRouter:
        router = APIRouter(responses=failures())
        responses = COPIED | failures(400, 404)
        router.add_api_route("/v1/stores/{store}", self.scan_store, response_model=PageDocument, responses=responses)
        return router

    async def scan_store(
        self,
        request: Request,
        store: str,
        group_from: GroupFrom = "",
        group_to: GroupTo = "",
        sort_from: SortFrom = "",
        sort_to: SortTo = "",
        limit: Limit = None,
        page_token: str = "",
        reverse: bool = False,
        if_none_match: IfNoneMatch = None,
    ) -> Response:
        """Answers with a page of the rows of a store, over all its shards, in the order of group, sort and member.

        Of the groups from `group_from` to below `group_to` it has the rows from `from` to below `to`; of what is left
        out there are all. A row that stays under its key from the first page to the last is on one of them, and once.
        """
        definition = find(self.stores, store)
        consumer = await self.identify(request)
        check_all_rows(consumer, definition.rule, store)
        if (sort_from or sort_to) and not definition.members:
            raise MalformedFrameError(f"{store} has one value per group: leave out from and to")
        for name, part in (("group_from", group_from), ("group_to", group_to), ("from", sort_from), ("to", sort_to)):
            check_key_part(name, part)
        token = self.page_tokens.open(page_token)
        scan = Scan("", sort_from, sort_to, reverse, limit or self.page_size, token, group_from, group_to)
        page = await self.client.scan(definition, scan)
        next_token = self.page_tokens.seal(page.next_page_token)

        rows = [seen_by(consumer, row) for row in page.states]
        body = partial(page_body, rows, {"next_page_token": next_token, **lag_document(page.lag_ms)})
        control = self.caching.control(definition, page.lag_ms)
        return await conditional(body, page_etag(page.states, not next_token), control, if_none_match, page.lag_ms)
