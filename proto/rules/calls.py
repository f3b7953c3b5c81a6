"""Says how instances are called by gRPC: how soon one is found again, and how a call is awaited."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import grpc
import grpc.aio

T = TypeVar("T")

RECONNECTING = (
    ("grpc.initial_reconnect_backoff_ms", 100),
    # How long an attempt to connect may take at least: with TLS it is four times there and back.
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    # A restarted instance may have another address behind its name; by default gRPC looks again after 30 s only.
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
)
"""The options of a channel to an instance that say how soon it is found again."""


async def answer_of(call: Awaitable[T]) -> T:
    """Returns the answer of a call of grpc.aio, and cancels it when its caller is cancelled. Raises AioRpcError.

    grpcio frees the memory of a call, about 1 KB, in the task that awaits the call's end, and its own cancellation
    ends that task too early (https://github.com/grpc/grpc/issues/43360). Here the task goes on until the call has
    ended. There is no public way to cancel the one without the other.

    A call that ends because its channel is closed has failed, with CANCELLED: its caller is not cancelled.
    """
    try:
        await asyncio.shield(call._call_response)  # type: ignore[attr-defined]
        return await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and not task.cancelling():
            nothing = grpc.aio.Metadata()
            raise grpc.aio.AioRpcError(
                grpc.StatusCode.CANCELLED, nothing, nothing, "its connection was closed"
            ) from None
        call._cython_call.cancel("cancelled by its caller")  # type: ignore[attr-defined]
        raise
