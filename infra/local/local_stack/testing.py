"""For the tests of this package: a real supervisor of two small programs, and waiting."""

import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx

from local_stack import child_process
from local_stack.errors import LocalStackError
from local_stack.foreground import run_stack
from local_stack.probe import HttpProbe
from local_stack.process_spec import ProcessSpec
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_text import WholeStackText
from local_stack.supervisor import StackText

DEADLINE_S = 30
SLEEPS = "import time; time.sleep(600)"
STARTS_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}])"


def wait_until(reached: Callable[[], object], what: str) -> None:
    """Returns once `reached()` is true. Raises AssertionError with `what` after half a minute."""
    deadline = time.monotonic() + DEADLINE_S
    while not reached():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {DEADLINE_S} s: {what}")
        time.sleep(0.02)


def small_stack(
    settings: Settings, directory: StackDirectory, client: httpx.AsyncClient
) -> tuple[Sequence[ProcessSpec], StackText]:
    """A web server, and a parent with a child; the parent counts as ready while the server is."""
    port = str(settings.edge_1_port)
    probe = HttpProbe(client, f"http://127.0.0.1:{port}/")
    server = (sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", str(directory.data))
    specs = [
        ProcessSpec("server", server, probe=probe, stops_last=True),
        ProcessSpec("parent", (sys.executable, "-c", STARTS_A_CHILD), probe=probe, after=("server",)),
    ]
    return specs, WholeStackText(settings, directory.tls / "ca.pem", {})


def start_small(_: Sequence[str], log: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Starts a supervisor of the small stack where `start_stack` would start one of the whole stack."""
    return child_process.start([sys.executable, "-m", "local_stack.testing"], log, environment)


if __name__ == "__main__":
    try:
        run_stack(Settings(), small_stack)
    except LocalStackError as error:
        sys.exit(str(error))
