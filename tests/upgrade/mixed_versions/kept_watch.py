"""Watches orders with the client of the interpreter that runs it, and prints each change as a line of JSON.

`python kept_watch.py ADDRESS API_KEY CA_FILE` reads one line of JSON: each order with the result of `saved()` of its
watch in another run, or null. It ends with its standard input. It uses only the client, so any release's will do.
"""

import asyncio
import json
import ssl
import sys
from typing import Any

from statecast_client.push import PushClient, Watch


async def keep(order_id: str, watch: Watch) -> None:
    """Prints the rows of each change, with the state from which another client can go on."""
    async for change in watch:
        rows = [{"value": row.value, "commit_time": row.commit_time} for row in change.rows.values()]
        line = {"order": order_id, "rows": rows, "resumed": watch.resumed, "saved": watch.saved()}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


async def main(address: str, key: str, ca_file: str) -> None:
    """Watches until standard input ends."""
    loop = asyncio.get_running_loop()
    kept: dict[str, Any] = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    tls = ssl.create_default_context(cafile=ca_file)
    async with PushClient(address, credentials={"apikey": key}, tls=tls) as client, asyncio.TaskGroup() as readers:
        tasks = [
            readers.create_task(
                keep(order_id, client.watch("orders-by-key", order_id, times=True, interval_ms=100, resume=saved))
            )
            for order_id, saved in kept.items()
        ]
        await loop.run_in_executor(None, sys.stdin.readline)
        for task in tasks:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
