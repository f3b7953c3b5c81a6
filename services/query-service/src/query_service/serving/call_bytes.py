"""Answers calls from bytes to bytes: at once where the servicer has a fast answer, and else by its method."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeAlias, runtime_checkable

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message_factory import GetMessageClass

from query_service.errors import LookupFailedError
from query_service.metrics import CALL_BEGAN
from query_service.serving.call_limits import MIN_CALL_BYTES, CallLimits, Context, ending_of, parsed

FastAnswer: TypeAlias = Callable[[bytes, float | None], "bytes | asyncio.Future[bytes | None] | None"]
"""Takes the bytes of a request, and the seconds that its caller has left, if it brought a deadline.

Returns the bytes of the response, or None: then the servicer must answer the call. A future has the same, once a peer
has answered, or raises LookupFailedError. It is called on the event loop, does not wait, and raises nothing. What it
returns is what the servicer would answer. It answers only while InFlight has room for the call, and holds nothing there
for longer than its future: the server does, until the response is sent.
"""

Handler: TypeAlias = Callable[[bytes, Context], Awaitable[bytes]]


@runtime_checkable
class AnswersFast(Protocol):
    """A servicer that can answer some calls at once, by the names of their methods."""

    fast: Mapping[str, FastAnswer]
    limits: CallLimits


def fast_answer_of(servicer: object, method: MethodDescriptor) -> FastAnswer | None:
    """Returns the fast answer that a servicer has for a method, if any."""
    return servicer.fast.get(method.name) if isinstance(servicer, AnswersFast) else None


def slow_handler_of(servicer: object, method: MethodDescriptor) -> Handler:
    """Returns what answers calls by the method alone. What is no message is refused, and not logged as a defect."""
    respond: Any = getattr(servicer, method.name)
    parse = partial(parsed, GetMessageClass(method.input_type))

    async def by_method(request: bytes, call: Context) -> bytes:
        response: bytes = (await respond(parse(request), call)).SerializeToString()
        return response

    return by_method


def handler_of(servicer: object, method: MethodDescriptor) -> Handler:
    """Returns what answers the calls of a method, at once where it can be."""
    by_method = slow_handler_of(servicer, method)
    answer = fast_answer_of(servicer, method)
    if answer is None or not isinstance(servicer, AnswersFast):
        return by_method
    in_flight = servicer.limits.in_flight

    async def at_once(request: bytes, call: Context) -> bytes:
        began, response = perf_counter(), answer(request, call.time_remaining())
        try:
            if isinstance(response, asyncio.Future):
                response = await response
            if response is not None:
                in_flight.hold(call, len(request) + MIN_CALL_BYTES + len(response))
        except LookupFailedError as failure:
            await call.abort(*ending_of(failure))
        if response is not None:
            return response
        CALL_BEGAN.set(began)
        return await by_method(request, call)

    return at_once
