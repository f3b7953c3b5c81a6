"""Decides which answers may be kept: public ones for a time, a caller's own by the caller, all others by nobody."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256

from fastapi import Response

from ws_edge.model.states import KeyState, Position
from ws_edge.model.stores import Store

NOT_KEPT = "private, no-store"
"""The default Cache-Control of answers: no cache can know which client an answer was for."""
OWN = "private, no-cache"
"""Only the caller may keep a copy, and must check it by its ETag each time."""


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


def key_etag(state: KeyState) -> str:
    """Returns the ETag of a key's state: its position."""
    return f'"{_text(state.position)}"'


def page_etag(store: Store, rows: Iterable[KeyState], is_last: bool) -> str:
    """Returns the ETag of a page: the form of its rows, and which they are, by their positions.

    It is weak, because tokens move without them.
    """
    text = " ".join([store.definition, *(_text(row.position) for row in rows), "." if is_last else "…"])
    return f'W/"{sha256(text.encode()).hexdigest()[:32]}"'


async def conditional(
    body: Callable[[], Awaitable[bytes]], etag: str, control: str, if_none_match: str | None, lag_ms: int
) -> Response:
    """Answers with a body of JSON, or with 304 when the caller has a copy; one that is not kept confirms no copy.

    The body is made only where it is sent.
    """
    headers = {"ETag": etag, "Cache-Control": control}
    known = {tag.strip().removeprefix("W/") for tag in (if_none_match or "").split(",")}
    if not lag_ms and control != NOT_KEPT and (etag.removeprefix("W/") in known or "*" in known):
        return Response(status_code=304, headers=headers)
    return Response(await body(), headers=headers, media_type="application/json")


def _text(position: Position) -> str:
    return f"{position.epoch}-{position.offset}"
