"""What each command asks, and what it writes."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import aclosing

from statecast.query.v1 import query_pb2
from statecast_client import rendering
from statecast_client.batches import KeyParts, key_of
from statecast_client.change import Change
from statecast_client.client import StatecastClient
from statecast_client.errors import AbsentError, InvalidError
from statecast_client.payloads import Decode, decoder

Write = Callable[[str], None]


async def run(client: StatecastClient, options: Namespace, write: Write) -> None:
    """Runs the chosen command; `write` takes its lines. Raises a StatecastError."""
    command = {"get": _get, "scan": _scan, "shards": _shards, "watch": _watch}[options.command]
    await command(client, options, write)


async def _get(client: StatecastClient, options: Namespace, write: Write) -> None:
    key = key_parts(options.key, options.separator)
    decode = await _decoder(client, options.store)
    try:
        answer = await client.get(options.store, key, bounds=_bounds(options))
    except AbsentError as absent:
        if options.json:
            documents = {"absence": rendering.fields(absent.absence), "freshness": rendering.fields(absent.freshness)}
            write(rendering.line({"key": rendering.fields(key_of(key)), **documents}))
        raise
    value = decode(answer.state.payload)
    if options.json:
        freshness = rendering.fields(answer.freshness)
        write(rendering.line({**rendering.state_document(answer.state, value), "freshness": freshness}))
    else:
        write(rendering.value_text(answer, value, options.separator))


async def _scan(client: StatecastClient, options: Namespace, write: Write) -> None:
    decode = await _decoder(client, options.store)
    rows = client.scan(
        options.store,
        options.group,
        sort_from=options.sort_from,
        sort_to=options.sort_to,
        sort_prefix=options.sort_prefix,
        reverse=options.reverse,
        local_only=options.local_only,
        page_size=min(options.limit or 1000, 1000),
        bounds=_bounds(options),
    )
    count = 0
    async with aclosing(rows):
        async for state in rows:
            value = decode(state.payload)
            if options.json:
                write(rendering.line(rendering.state_document(state, value)))
            else:
                write(rendering.row_text(state, value, options.separator))
            count += 1
            if count == options.limit:
                break


async def _shards(client: StatecastClient, options: Namespace, write: Write) -> None:
    listing = await client.shards(options.store)
    if options.json:
        for each in (*listing.stores, *listing.shards):
            write(rendering.line(rendering.fields(each)))
    else:
        for text in rendering.shards_text(listing):
            write(text)


async def _watch(client: StatecastClient, options: Namespace, write: Write) -> None:
    keys = [key_parts(text, options.separator) for text in options.keys]
    decode = await _decoder(client, options.store)
    changes = client.watch(options.store, keys)
    count = 0
    async with aclosing(changes):
        async for change in changes:
            value = decode(change.state.payload) if change.state is not None else None
            write(change_line(change, value, options))
            count += 1
            if count == options.limit:
                break


def change_line(change: Change, value: object, options: Namespace) -> str:
    """What `watch` writes for a change."""
    if not options.json:
        return rendering.change_text(change, value, options.separator)
    if change.state is not None:
        return rendering.line(rendering.state_document(change.state, value))
    absence = rendering.fields(change.absence or query_pb2.Absence())
    return rendering.line({"key": rendering.fields(change.key), "absence": absence})


async def _decoder(client: StatecastClient, store: str) -> Decode:
    if not store:
        raise InvalidError("STORE is empty: name one; `statecast shards` lists them")
    return decoder((await client.shards(store)).stores[0].message)


def _bounds(options: Namespace) -> query_pb2.Bounds | None:
    return None if options.max_lag_ms is None else query_pb2.Bounds(max_lag_ms=options.max_lag_ms)


def key_parts(text: str, separator: str) -> KeyParts:
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
