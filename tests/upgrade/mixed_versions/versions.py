"""The release that each process of a stack runs, and the client of the last release."""

import json
import shlex
import subprocess
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from drivers.gateway_client import Gateway

from local_stack.settings import EDGES, KONG_FILE, PROGRAMS, QUERIES, ROOT
from statecast_client.push import Row
from testkit.release.artifacts import run
from testkit.release.environments import ReleasedEnvironment, cache_directory, last_environment
from testkit.release.record import last_release, read_record
from testkit.waiting import scaled, wait_until

HEAD = "head"
KEPT_WATCH = Path(__file__).with_name("kept_watch.py")
GATEWAY, PROCESSOR = "gateway", "stream-processor"
PARTS = {
    **dict.fromkeys(QUERIES, "query-service"),
    **dict.fromkeys(EDGES, "ws-edge"),
    PROCESSOR: PROCESSOR,
    GATEWAY: "statecast-infra",
}
"""The part of each process that is upgraded, in the order of docs/compatibility.md: readers come before writers."""


class Versions:
    """Programs of a stack below a directory, each of HEAD or of the last release of its part."""

    def __init__(self, directory: Path) -> None:
        """Makes missing environments of last releases first, and chooses these. Raises ReleaseError."""
        services = {part for name, part in PARTS.items() if name != GATEWAY}
        self._released = {part: last_environment(ROOT, part, cache_directory()) for part in services}
        self.programs, self.kong_file = directory / "programs", directory / "kong.yaml"
        self.programs.mkdir(parents=True)
        (self.programs / "cdc-simulator").symlink_to(PROGRAMS / "cdc-simulator")
        self.current = dict.fromkeys(PARTS, "")
        for name in PARTS:
            self.choose_last(name)

    def choose_head(self, name: str) -> None:
        """Has the process run HEAD from its next start on."""
        self.current[name] = HEAD
        if name == GATEWAY:
            self.kong_file.write_bytes(KONG_FILE.read_bytes())
        else:
            self._write(name, PROGRAMS, {})

    def choose_last(self, name: str) -> None:
        """Has the process run the last release of its part from its next start on."""
        if name == GATEWAY:
            recorded = last_release(ROOT / "releases", PARTS[name])
            assert recorded is not None
            record = read_record(recorded)
            self.current[name] = record.version
            self.kong_file.write_text(run(ROOT, "git", "show", f"{record.commit}:{KONG_FILE.relative_to(ROOT)}"))
        else:
            released = self._released[PARTS[name]]
            self.current[name] = released.record.version
            jars = {"STREAM_PROCESSOR_JARS": str(released.jars)} if name == PROCESSOR else {}
            self._write(name, released.programs, jars)

    def _write(self, name: str, programs: Path, variables: Mapping[str, str]) -> None:
        words = ["env", *(f"{variable}={value}" for variable, value in variables.items()), str(programs / PARTS[name])]
        script = self.programs / name
        script.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        script.chmod(0o755)


class KeptWatches:
    """Watches of orders by the client of a release, in a process of its own, while it is entered.

    `rows` are all rows that came, by their orders; `saved` is from where another client can go on.
    """

    def __init__(self, client: ReleasedEnvironment | None, gateway: Gateway, key: str) -> None:
        """None is the client of HEAD. Nothing runs before it is entered, and then nothing before `resume`."""
        programs = client.programs if client else PROGRAMS
        address = f"{gateway.wss}/v1/stream"
        self._command = [str(programs / "python"), str(KEPT_WATCH), address, key, gateway.ca_certificate]
        self.version = client.record.version if client else HEAD
        self.rows: dict[str, list[Row]] = defaultdict(list)
        self.saved: dict[str, Any] = {}
        self.resumed: dict[str, bool | None] = {}

    def __enter__(self) -> Self:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        self._reader = threading.Thread(target=self._read)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        with self._process:  # which closes its pipes
            self._process.stdin.close()
            try:
                status = self._process.wait(scaled(20))
            finally:
                self._process.kill()
                self._process.wait()
                self._reader.join()
            errors = self._process.stderr.read()
        assert (status, errors) == (0, ""), f"the client of {self.version} ended with {status}: {errors}"

    def resume(self, saved: Mapping[str, Any], order_ids: Sequence[str]) -> None:
        """Begins to watch orders, from where another client was; returns when each has its rows."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({order_id: saved.get(order_id) for order_id in order_ids}) + "\n")
        self._process.stdin.flush()
        self._reader.start()
        wait_until(lambda: self.saved.keys() >= set(order_ids), lambda: f"rows of all orders; have {[*self.saved]}")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            change = json.loads(line)
            order_id = change["order"]
            self.rows[order_id] += [Row("", "", row["value"], commit_time=row["commit_time"]) for row in change["rows"]]
            self.resumed[order_id] = change["resumed"]
            self.saved[order_id] = change["saved"]
