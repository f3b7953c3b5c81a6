"""The command that handles one row, as a process: the row comes on standard input, its identity in the environment."""

import asyncio
import hashlib
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from typing_extensions import override

from statecast.query.v1.query_pb2 import State
from statecast_client.rendering import Decode, line, state_document
from statecast_jobs.ledger import RowKey, row_key

PREFIX = "STATECAST_JOB_"


class Result(NamedTuple):
    """The result of an attempt; `reason` says why it failed."""

    succeeded: bool
    reason: str = ""


class RowCommand(Protocol):
    """Handles one row."""

    async def run(self, row: State, attempt: int) -> Result: ...


def row_id(run: str, store: str, key: RowKey) -> str:
    """Names a row in a run, the same at each attempt and every runner: this makes a repetition harmless."""
    group, member = key
    return hashlib.sha256("\0".join((run, store, group, "", member)).encode()).hexdigest()[:32]


class ProcessCommand(RowCommand):
    """Starts a process for each row; status 0 says that the row has been handled."""

    def __init__(self, words: Sequence[str], run: str, store: str, decode: Decode, timeout_s: float) -> None:
        self._words, self._run, self._store = words, run, store
        self._decode, self._timeout_s = decode, timeout_s

    @override
    async def run(self, row: State, attempt: int) -> Result:
        """Runs the process; ends it, and the processes that it has started, when it takes too long."""
        try:
            # In a session of its own: Ctrl-C lets the rows in work come to their end.
            process = await asyncio.create_subprocess_exec(
                *self._words, stdin=asyncio.subprocess.PIPE, env=self._environment(row, attempt), start_new_session=True
            )
        except OSError as error:
            return Result(succeeded=False, reason=f"{self._words[0]} cannot be started: {error.strerror}")
        document = line(state_document(row, self._decode(row.payload))).encode()
        try:
            async with asyncio.timeout(self._timeout_s):
                await process.communicate(document)
        except TimeoutError:
            return Result(succeeded=False, reason=f"took longer than {self._timeout_s:g} s")
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        status = process.returncode
        return Result(succeeded=True) if status == 0 else Result(succeeded=False, reason=f"ended with status {status}")

    def _environment(self, row: State, attempt: int) -> Mapping[str, str]:
        values = {
            "RUN": self._run,
            "STORE": self._store,
            "GROUP": row.key.group,
            "SORT": row.key.sort,
            "MEMBER": row.key.member,
            "ROW_ID": row_id(self._run, self._store, row_key(row.key)),
            "ATTEMPT": str(attempt),
        }
        return os.environ | {f"{PREFIX}{name}": value for name, value in values.items()}
