"""What each command of `statecast` asks, and what it writes."""

import asyncio
import sys
from argparse import Namespace
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from typing import TypeVar

from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Changed, Removed
from statecast.query.v1 import query_pb2
from statecast_client import rendering, tls
from statecast_client.client import StatecastClient
from statecast_client.errors import AbsentError, InvalidError, StatecastError, UnavailableError
from statecast_client.keys import Change, KeyParts, key_of
from statecast_client.push import PushClient, RangeSubscription, RangeUpdate, Subscription, Update
from statecast_client.rendering import Decode, decoder
from statecast_client.watching import merged

STREAM = "/v1/stream"

T = TypeVar("T")


async def run(client: StatecastClient, options: Namespace) -> None:
    """Runs the chosen command at the query service. Raises a StatecastError."""
    command = {"get": _get, "scan": _scan, "shards": _shards, "watch": _watch}[options.command]
    await command(client, options)


async def watch_push(options: Namespace) -> None:
    """Runs `watch --push`: through the gateway, as an application watches. Raises a StatecastError."""
    address = options.gateway.rstrip("/") + STREAM
    encrypted = address.startswith("wss:")
    context = tls.context(options.tls_ca, options.tls_certificate, options.tls_key) if encrypted else None
    async with PushClient(address, credentials=_credentials(options), tls=context) as client:
        try:
            async with asyncio.timeout(options.timeout):
                await client.opened()
        except TimeoutError as error:
            raise UnavailableError(str(client.reason or f"{address} does not answer")) from error
        updates = _updates(await _subscribe(client, options))
        await _write_each(updates, lambda update: _update_line(update, options), options.limit)


async def _get(client: StatecastClient, options: Namespace) -> None:
    key = _key_parts(options.key, options.separator)
    decode = await _decoder(client, options.store)
    try:
        answer = await client.get(options.store, key, bounds=_bounds(options))
    except AbsentError as absent:
        if options.json:
            documents = {"absence": rendering.fields(absent.absence), "freshness": rendering.fields(absent.freshness)}
            _write(rendering.line({"key": rendering.fields(key_of(key)), **documents}))
        raise
    value = decode(answer.state.payload)
    if options.json:
        freshness = rendering.fields(answer.freshness)
        _write(rendering.line({**rendering.state_document(answer.state, value), "freshness": freshness}))
    else:
        _write(rendering.value_text(answer, value, options.separator))


async def _scan(client: StatecastClient, options: Namespace) -> None:
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

    def line(state: query_pb2.State) -> str:
        value = decode(state.payload)
        if options.json:
            return rendering.line(rendering.state_document(state, value))
        return f"{rendering.key_text(state.key, options.separator)}  {rendering.line(value)}"

    await _write_each(rows, line, options.limit)


async def _shards(client: StatecastClient, options: Namespace) -> None:
    listing = await client.shards(options.store)
    documents = (rendering.line(rendering.fields(message)) for message in (*listing.stores, *listing.shards))
    for text in documents if options.json else rendering.shards_text(listing):
        _write(text)


async def _watch(client: StatecastClient, options: Namespace) -> None:
    keys = [_key_parts(text, options.separator) for text in options.keys]
    decode = await _decoder(client, options.store)

    def line(change: Change) -> str:
        return _change_line(change, decode(change.state.payload) if change.state is not None else None, options)

    await _write_each(client.watch(options.store, keys), line, options.limit)


def _write(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def _write_each(items: AsyncGenerator[T, None], line: Callable[[T], str | None], limit: int | None) -> None:
    """Writes the line of each item, up to the limit; an item without a line does not count."""
    count = 0
    async with aclosing(items):
        async for item in items:
            if (text := line(item)) is not None:
                _write(text)
                count += 1
            if count == limit:
                break


async def _decoder(client: StatecastClient, store: str) -> Decode:
    if not store:
        raise InvalidError("STORE is empty: name one; `statecast shards` lists them")
    return decoder((await client.shards(store)).stores[0].message)


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


def _change_line(change: Change, value: object, options: Namespace) -> str:
    if not options.json:
        return rendering.change_text(change, value, options.separator)
    if change.state is not None:
        return rendering.line(rendering.state_document(change.state, value))
    absence = rendering.fields(change.absence or query_pb2.Absence())
    return rendering.line({"key": rendering.fields(change.key), "absence": absence})


def _credentials(options: Namespace) -> dict[str, str]:
    if sum(map(bool, (options.api_key, options.token, options.user))) != 1:
        raise InvalidError("give one of --api-key, --token and --user, or of their variables")
    if options.api_key:
        return {"apikey": options.api_key}
    if options.token:
        return {"Authorization": f"Bearer {options.token}"}
    return {"Authorization": f"Basic {b64encode(options.user.encode()).decode()}"}


async def _subscribe(client: PushClient, options: Namespace) -> list[Subscription] | list[RangeSubscription]:
    if not options.group:
        keys = [_key_parts(text, options.separator) for text in options.keys]
        return [await client.subscribe(options.store, key, interval_ms=options.interval_ms) for key in keys]
    watched = Range(
        store=options.store,
        group=options.group,
        sort_from=options.sort_from,
        sort_to=options.sort_to,
        reverse=options.reverse,
        limit=options.members,
    )
    return [await client.watch_range(watched, interval_ms=options.interval_ms)]


def _updates(subscriptions: Iterable[Subscription | RangeSubscription]) -> AsyncGenerator[Update | RangeUpdate, None]:
    """Yields the updates of all subscriptions. Raises the error that ends one."""
    queue: asyncio.Queue[Update | RangeUpdate | StatecastError] = asyncio.Queue(1)

    async def read(subscription: Subscription | RangeSubscription) -> None:
        try:
            async for update in subscription:
                await queue.put(update)
        except StatecastError as error:
            await queue.put(error)

    return merged(queue, (read(subscription) for subscription in subscriptions))


def _update_line(update: Update | RangeUpdate, options: Namespace) -> str | None:
    if isinstance(update, RangeWatched):
        return None
    value = None
    if not isinstance(update, Removed) and update.HasField("row"):
        value = decoder(update.row.TypeName())(update.row.value)
    if not isinstance(update, RangeChanged):
        return _change_line(_change(update), value, options)
    word = MemberChange.Name(update.change).removeprefix("MEMBER_CHANGE_").lower()
    if options.json:
        return rendering.line({"change": word, **rendering.state_document(_state(update), value)})
    key, position = rendering.key_text(update.key, options.separator), rendering.position_text(update.position)
    return f"{word}  {key}  {position}{'' if value is None else f'  {rendering.line(value)}'}"


def _change(update: Update) -> Change:
    if isinstance(update, Changed):
        return Change(update.key, update.position, state=_state(update))
    absence = query_pb2.Absence(position=update.position, deleted=update.HasField("commit_time"))
    return Change(update.key, update.position, absence=absence)


def _state(update: Changed | RangeChanged) -> query_pb2.State:
    state = query_pb2.State(key=update.key, position=update.position)
    if update.HasField("commit_time"):
        state.commit_time.CopyFrom(update.commit_time)
    return state
