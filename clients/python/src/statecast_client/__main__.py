"""The command `statecast`: asks the query service from the shell, or watches through the gateway."""

import asyncio
import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points

from statecast_client.client import StatecastClient
from statecast_client.command_line import parse
from statecast_client.commands import run, show_token, watch_push
from statecast_client.errors import AbsentError, BehindError, OverloadedError, StatecastError, UnavailableError
from statecast_client.tls import credentials

COMMANDS = "statecast.commands"
"""The group of entry points of other distributions' commands; each takes its arguments and returns a status."""
_INTERRUPTED = 130
_EXIT_STATUSES = {AbsentError: 1, UnavailableError: 3, OverloadedError: 3, BehindError: 4}
"""Any other error is something that the caller has to correct: 2."""


def main(arguments: Sequence[str] | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Runs the command; returns its exit status, which `--help` lists."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for command in entry_points(group=COMMANDS):
        if words[:1] == [command.name]:
            return int(command.load()(words[1:]))
    options = parse(arguments, environment)
    try:
        asyncio.run(_run(options))
    except StatecastError as error:
        sys.stderr.write(f"statecast: {' '.join(str(error).split())}\n")
        return _EXIT_STATUSES.get(type(error), 2)
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        return _INTERRUPTED
    return 0


async def _run(options: Namespace) -> None:
    if options.command == "token":
        show_token(options)
        return
    if options.command == "watch" and options.push:
        await watch_push(options)
        return
    encrypted = options.tls or options.tls_ca or options.tls_certificate or options.tls_key
    secrets = credentials(options.tls_ca, options.tls_certificate, options.tls_key) if encrypted else None
    addresses = [address.strip() for address in options.address.split(",") if address.strip()]
    async with StatecastClient(
        addresses, credentials=secrets, proxy=options.proxy, timeout_s=options.timeout
    ) as client:
        await run(client, options)


if __name__ == "__main__":
    sys.exit(main())
