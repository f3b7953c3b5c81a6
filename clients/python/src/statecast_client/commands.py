"""The commands of `statecast`: their requests and their output."""

import asyncio
import sys
from argparse import Namespace
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import TypeVar

from statecast.query.v1 import query_pb2
from statecast_client import rendering, tls
from statecast_client.client import StatecastClient, merged
from statecast_client.errors import AbsentError, InvalidError, UnavailableError
from statecast_client.keys import Change, KeyParts, key_of
from statecast_client.push import Change as PushChange
from statecast_client.push import PushClient, Watch
from statecast_client.rendering import Decode, decoder, fields, state_document
from statecast_client.tokens import position_in

STREAM = "/v1/stream"

T = TypeVar("T")
Row = str | Mapping[str, object]
"""A text for people, or a document."""


async def run(client: StatecastClient, options: Namespace) -> None:
    """Runs the chosen command at the query service. Raises a StatecastError."""
    command = {"get": _get, "scan": _scan, "shards": _shards, "watch": _watch}[options.command]
    await command(client, options)


async def watch_push(options: Namespace) -> None:
    """Runs `watch --push`: through the gateway, as an application watches. Raises a StatecastError."""
    address = options.gateway.rstrip("/") + STREAM
    encrypted = address.startswith("wss:")
    context = tls.context(options.tls_ca, options.tls_certificate, options.tls_key) if encrypted else None
    async with PushClient(address, credentials=_credentials(options), tls=context, proxy=options.proxy) as client:
        try:
            async with asyncio.timeout(options.timeout):
                await client.opened()
        except TimeoutError as error:
            raise UnavailableError(str(client.reason or f"{address} does not answer")) from error
        rows = merged([_pushed(_watch_group(client, group, options), group, options) for group in options.keys])
        await _write_each(rows, lambda row: row, options.limit)


def show_token(options: Namespace) -> None:
    """Runs `token`. Raises InvalidError."""
    offset, ahead = position_in(options.token)
    _write({"offset": offset, "ahead": ahead} if options.json else f"offset {offset}, and {ahead} ahead")


async def _get(client: StatecastClient, options: Namespace) -> None:
    key = _key_parts(options.key, options.separator)
    decode = await _decoder(client, options)
    try:
        answer = await client.get(options.store, key, bounds=_bounds(options))
    except AbsentError as absent:
        if options.json:
            document = {"key": fields(key_of(key)), "absence": fields(absent.absence)}
            _write(document | {"freshness": fields(absent.freshness)})
        raise
    value = decode(answer.state.payload)
    document = state_document(answer.state, value) | {"freshness": fields(answer.freshness)}
    _write(document if options.json else rendering.value_text(answer, value, options.separator))


async def _scan(client: StatecastClient, options: Namespace) -> None:
    decode = await _decoder(client, options)
    rows = client.scan(
        options.store,
        options.group,
        group_from=options.group_from,
        group_to=options.group_to,
        sort_from=options.sort_from,
        sort_to=options.sort_to,
        sort_prefix=options.sort_prefix,
        reverse=options.reverse,
        local_only=options.local_only,
        page_size=min(options.limit or 1000, 1000),
        bounds=_bounds(options),
    )

    def row(state: query_pb2.State) -> Row:
        value = decode(state.payload)
        if options.json:
            return state_document(state, value)
        return f"{rendering.key_text(state.key, options.separator)}  {rendering.line(value)}"

    await _write_each(rows, row, options.limit)


async def _shards(client: StatecastClient, options: Namespace) -> None:
    listing = await client.shards(options.store)
    documents = map(fields, (*listing.stores, *listing.shards))
    for row in documents if options.json else rendering.shards_text(listing):
        _write(row)


async def _watch(client: StatecastClient, options: Namespace) -> None:
    keys = [_key_parts(text, options.separator) for text in options.keys]
    decode = await _decoder(client, options)

    def row(change: Change) -> Row:
        return _change_row(change, None if change.state is None else decode(change.state.payload), options)

    await _write_each(client.watch(options.store, keys), row, options.limit)


def _write(row: Row) -> None:
    sys.stdout.write(f"{row if isinstance(row, str) else rendering.line(row)}\n")
    sys.stdout.flush()


async def _write_each(items: AsyncGenerator[T, None], row: Callable[[T], Row | None], limit: int | None) -> None:
    """Writes the row of each item, up to the limit; an item without a row does not count."""
    count = 0
    async with aclosing(items):
        async for item in items:
            if (written := row(item)) is not None:
                _write(written)
                count += 1
            if count == limit:
                break


async def _decoder(client: StatecastClient, options: Namespace) -> Decode:
    if not options.store:
        raise InvalidError("STORE is empty: name one; `statecast shards` lists them")
    return decoder((await client.shards(options.store)).stores[0].message, options.descriptors)


def _bounds(options: Namespace) -> query_pb2.Bounds | None:
    return None if options.max_lag_ms is None else query_pb2.Bounds(max_lag_ms=options.max_lag_ms)


def _key_parts(text: str, separator: str) -> KeyParts:
    """Reads a KEY. Raises InvalidError."""
    parts = text.split(separator) if separator else [text]
    if len(parts) == 1:
        return text
    if len(parts) != 3:
        raise InvalidError(
            f"KEY `{text}` has {len(parts)} parts: give GROUP, or GROUP{separator}SORT{separator}MEMBER; "
            "--separator takes another sign"
        )
    return parts[0], parts[1], parts[2]


def _change_row(change: Change, value: object, options: Namespace) -> Row:
    if not options.json:
        return rendering.change_text(change, value, options.separator)
    if change.state is not None:
        return state_document(change.state, value)
    return {"key": fields(change.key), "absence": fields(change.absence or query_pb2.Absence())}


def _credentials(options: Namespace) -> dict[str, str]:
    if sum(map(bool, (options.api_key, options.token, options.user))) != 1:
        raise InvalidError("give one of --api-key, --token and --user, or of their variables")
    if options.api_key:
        return {"apikey": options.api_key}
    if options.token:
        return {"Authorization": f"Bearer {options.token}"}
    return {"Authorization": f"Basic {b64encode(options.user.encode()).decode()}"}


def _watch_group(client: PushClient, group: str, options: Namespace) -> Watch:
    return client.watch(
        options.store,
        group,
        sort_from=options.sort_from,
        sort_to=options.sort_to,
        limit=options.rows,
        reverse=options.reverse,
        times=options.json,
        interval_ms=options.interval_ms,
    )


async def _pushed(watch: Watch, group: str, options: Namespace) -> AsyncGenerator[Row, None]:
    """Yields the rows of each change, and the keys of those that have left."""
    async for change in watch:
        for row in _json_rows(group, change) if options.json else _texts(group, change, options.separator):
            yield row


def _json_rows(group: str, change: PushChange) -> Iterator[Row]:
    for key, row in change.rows.items():
        times = {"commit_time": row.commit_time} if row.commit_time else {}
        yield {"group": group, "key": key, "sort": row.sort, "value": row.value, **times, "token": change.token}
    for key, error in change.left.items():
        why = {"error": {"code": error.code, "message": str(error)}} if error else {}
        yield {"group": group, "key": key, "left": True, **why, "token": change.token}


def _texts(group: str, change: PushChange, separator: str) -> Iterator[Row]:
    for key, row in change.rows.items():
        yield f"{separator.join((group, row.sort, key) if key else (group,))}  {rendering.line(row.value)}"
    for key, error in change.left.items():
        yield f"{separator.join((group, key) if key else (group,))}  has left{f': {error}' if error else ''}"
