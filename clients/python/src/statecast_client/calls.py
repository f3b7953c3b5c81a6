"""Awaits calls of gRPC such that one that is cancelled gives back its memory."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

import grpc
import grpc.aio

T = TypeVar("T")


async def answer_of(call: Awaitable[T]) -> T:
    """Returns the answer of a call of grpc.aio, and cancels it when its caller is cancelled. Raises AioRpcError.

    grpcio frees what it allocates for a call, about 1 KB, in the task that awaits the call's end, and its own
    cancellation ends that task before (https://github.com/grpc/grpc/issues/43360). Here the task goes on until the
    call has ended. There is no public way to cancel the one without the other.

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
