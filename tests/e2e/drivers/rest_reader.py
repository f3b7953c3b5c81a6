"""A client that reads one order all the time, and keeps the offset of every answer."""

import threading
from itertools import pairwise

import httpx

from drivers.gateway_client import GatewayClient, offset_of
from testkit.waiting import wait_until

READ_EVERY_S = 0.05


class RestReader:
    """Reads one order through the gateway all the time, each time on a connection of its own, and sends its ETag."""

    def __init__(self, client: GatewayClient, order_id: str) -> None:
        self._client, self._path = client, f"/update/orders/{order_id}"
        self.offsets: list[int] = []
        self.failures: list[str] = []

    @property
    def backward(self) -> list[str]:
        """The answers that were older than the one before, by their places and offsets."""
        steps = enumerate(pairwise(self.offsets), start=1)
        return [f"answer {number}: {before} → {after}" for number, (before, after) in steps if after < before]

    def read_until(self, done: threading.Event) -> None:
        """Goes on until `done` is set."""
        etag = ""
        while not done.wait(READ_EVERY_S):
            try:
                answer = self._client.get_newer(self._path, etag) if etag else self._client.get(self._path)
            except httpx.HTTPError as failure:
                self.failures.append(repr(failure))
                continue
            if answer.status_code == httpx.codes.OK:
                etag = answer.headers["ETag"]
                self.offsets.append(offset_of(answer.json()))
            elif answer.status_code == httpx.codes.NOT_MODIFIED:
                self.offsets.append(self.offsets[-1])
            else:
                self.failures.append(f"{answer.status_code} {answer.text}")

    def read_more(self, count: int = 10) -> None:
        """Returns after so many more answers."""
        wanted = len(self.offsets) + count
        wait_until(lambda: len(self.offsets) >= wanted, lambda: f"reads go on; failures: {self.failures}")
