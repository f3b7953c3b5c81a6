"""The command `statecast watch --push`: over the gateway, as an application watches, and written as `watch` writes."""

import asyncio
from argparse import Namespace
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from functools import cache

from google.protobuf.any_pb2 import Any

from statecast.push.v1.range_pb2 import MemberChange, Range, RangeChanged, RangeWatched
from statecast.push.v1.subscription_pb2 import Changed, Removed
from statecast.query.v1 import query_pb2
from statecast_client import rendering, tls
from statecast_client.change import Change
from statecast_client.commands import Write, change_line, key_parts
from statecast_client.errors import InvalidError, StatecastError, UnavailableError
from statecast_client.gathering import gathered
from statecast_client.payloads import Decode, decoder
from statecast_client.push import PushClient, RangeSubscription, RangeUpdate, Subscription, Update

STREAM = "/v1/stream"


async def watch(options: Namespace, write: Write) -> None:
    """Writes changes until the limit is reached, or it is cancelled. Raises a StatecastError."""
    address = options.gateway.rstrip("/") + STREAM
    encrypted = address.startswith("wss:")
    context = tls.context(options.tls_ca, options.tls_certificate, options.tls_key) if encrypted else None
    async with PushClient(address, credentials=_credentials(options), tls=context) as client:
        await _open(client, address, options.timeout)
        count = 0
        changes = _told(await _subscribe(client, options))
        async with aclosing(changes):
            async for told in changes:
                if isinstance(told, RangeWatched):
                    continue
                write(_line(told, options))
                count += 1
                if count == options.limit:
                    break


def _credentials(options: Namespace) -> dict[str, str]:
    given = [name for name in ("api_key", "token", "user") if getattr(options, name)]
    if len(given) != 1:
        raise InvalidError("give one of --api-key, --token and --user, or of their variables")
    if options.api_key:
        return {"apikey": options.api_key}
    if options.token:
        return {"Authorization": f"Bearer {options.token}"}
    return {"Authorization": f"Basic {b64encode(options.user.encode()).decode()}"}


async def _open(client: PushClient, address: str, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await client.opened()
    except TimeoutError as error:
        raise UnavailableError(str(client.reason or f"{address} does not answer")) from error


async def _subscribe(client: PushClient, options: Namespace) -> list[Subscription] | list[RangeSubscription]:
    if not options.group:
        keys = [key_parts(text, options.separator) for text in options.keys]
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


def _told(subscriptions: Iterable[Subscription | RangeSubscription]) -> AsyncGenerator[Update | RangeUpdate, None]:
    """Yields what any of them tells. Raises what ends one."""
    found: asyncio.Queue[Update | RangeUpdate | StatecastError] = asyncio.Queue(1)

    async def read(subscription: Subscription | RangeSubscription) -> None:
        try:
            async for told in subscription:
                await found.put(told)
        except StatecastError as error:
            await found.put(error)

    return gathered(found, (read(subscription) for subscription in subscriptions))


def _line(told: Update | RangeChanged, options: Namespace) -> str:
    value = None if isinstance(told, Removed) or not told.HasField("row") else _value(told.row)
    if not isinstance(told, RangeChanged):
        return change_line(_change(told), value, options)
    word = MemberChange.Name(told.change).removeprefix("MEMBER_CHANGE_").lower()
    if options.json:
        state = rendering.state_document(_state(told), value)
        return rendering.line({"change": word, **state})
    key, position = rendering.key_text(told.key, options.separator), rendering.position_text(told.position)
    return f"{word}  {key}  {position}{'' if value is None else f'  {rendering.line(value)}'}"


def _change(told: Update) -> Change:
    if isinstance(told, Changed):
        return Change(told.key, told.position, state=_state(told))
    absence = query_pb2.Absence(position=told.position, deleted=told.HasField("commit_time"))
    return Change(told.key, told.position, absence=absence)


def _state(told: Changed | RangeChanged) -> query_pb2.State:
    state = query_pb2.State(key=told.key, position=told.position)
    if told.HasField("commit_time"):
        state.commit_time.CopyFrom(told.commit_time)
    return state


def _value(row: Any) -> object:
    return _decoder(row.TypeName())(row.value)


@cache
def _decoder(message: str) -> Decode:
    return decoder(message)
