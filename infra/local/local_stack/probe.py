"""Asks a process whether it is ready."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import httpx

from local_stack.broker import Broker


class Probe(Protocol):
    """What the supervisor asks until a process is ready, and again and again after that."""

    async def missing(self) -> str:
        """Returns what is missing, for people; empty when the process is ready. Takes 3 s at most; never raises."""
        ...


@dataclass(frozen=True)
class HttpProbe:
    """Ready when the URL answers 200."""

    client: httpx.AsyncClient
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)

    async def missing(self) -> str:
        """See Probe."""
        try:
            answer = await self.client.get(self.url, headers=self.headers, timeout=2)
        except httpx.HTTPError as error:
            return f"{self.url}: {type(error).__name__}"
        return "" if answer.status_code == 200 else f"{self.url}: {answer.status_code} {answer.text[:200].strip()}"


@dataclass(frozen=True)
class BrokerProbe:
    """Ready when the broker serves metadata."""

    broker: Broker

    async def missing(self) -> str:
        """See Probe."""
        answers = await asyncio.to_thread(self.broker.answers)
        return "" if answers else f"no broker answers at {self.broker.bootstrap}"
