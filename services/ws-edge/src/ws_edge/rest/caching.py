"""Decides which answers may be kept: public ones for a time, a caller's own by the caller, all others by nobody."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from hashlib import sha256

from fastapi import Response

from ws_edge.model.states import Position
from ws_edge.model.stores import Store
from ws_edge.rest.row_pages import RowPage

NOT_KEPT = "private, no-store"
"""The default Cache-Control of answers: no cache can know which client an answer was for."""
OWN = "private, no-cache"
"""Only the caller may keep a copy, and must check it by its ETag each time."""
PLACE = re.compile(r'-([0-9]{1,19})-([0-9]{1,19})"$')
"""The epoch and the offset at the end of an ETag."""


@dataclass(frozen=True)
class PublicCaching:
    """How long caches, those of a CDN too, may hand out answers about stores that everyone may read."""

    max_age_s: int
    """For so many seconds without asking; 0 leaves every answer to its caller alone."""
    stale_s: int
    """For so many seconds more while they ask for a newer one."""

    def control(self, store: Store, lag_ms: int) -> str:
        """Returns the Cache-Control of an answer.

        One that may already have been out of date for `lag_ms` is not kept, nor is one with private fields: the same
        position stands for as many answers as the row has owners.
        """
        if lag_ms or store.private:
            return NOT_KEPT
        if not store.rule.everyone or not self.max_age_s:
            return OWN
        return f"public, max-age={self.max_age_s}, stale-while-revalidate={self.stale_s}"

    async def answer(
        self, store: Store, page: RowPage, body: Callable[[], Awaitable[bytes]], if_none_match: str | None
    ) -> Response:
        """Answers with a body of JSON, or with 304 when the caller has a copy that is as new or newer.

        A copy is newer when the replica that answered has not read as far as the copy's record, so that a caller who
        sends the ETag never sees a row go back. An answer that may be out of date confirms no other copy. The body is
        made only where it is sent.
        """
        headers = {"Cache-Control": self.control(store, page.lag_ms)}
        if store.private:  # an ETag would change with what is hidden
            return Response(await body(), headers=headers, media_type="application/json")
        etag = headers["ETag"] = etag_of(store, page)
        content = _content(etag)
        for known in map(str.strip, if_none_match.split(",")) if if_none_match else ():
            is_same = _content(known) == content or (known == "*" and page.rows)
            if (is_same and not page.lag_ms) or _is_ahead(known, page.through):
                return Response(status_code=304, headers=headers if known == "*" else headers | {"ETag": known})
        return Response(await body(), headers=headers, media_type="application/json")


def etag_of(store: Store, page: RowPage) -> str:
    """Returns the ETag of a page: the form of its rows, which they are, by their positions, and as of which record.

    It is weak, because tokens move without the rows.
    """
    rows = [row.position for row in page.rows]
    text = " ".join([store.definition, *map(_text, rows), "…" if page.next_page_token else "."])
    content, as_of = sha256(text.encode()).hexdigest()[:32], page.position
    if as_of is None:
        return f'W/"{content}"'
    # A row that was applied while the page was read is newer than the page.
    newest = max([as_of, *(position for position in rows if position.epoch == as_of.epoch)])
    return f'W/"{content}-{_text(newest)}"'


def _text(position: Position) -> str:
    return f"{position.epoch}-{position.offset}"


def _content(etag: str) -> str:
    """Returns the part of an ETag that stands for the rows."""
    return etag.removeprefix("W/").strip('"').partition("-")[0]


def _is_ahead(etag: str, through: Position | None) -> bool:
    """Returns whether the ETag is as of a record that a replica, which has read as far as `through`, does not know."""
    place = PLACE.search(etag)
    if place is None or through is None:
        return False
    epoch, offset = map(int, place.groups())
    return epoch == through.epoch and offset > through.offset
