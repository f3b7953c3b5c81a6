"""A stack of two small programs, which a real supervisor keeps running; as a program it is that supervisor."""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from local_stack import LocalStackError
from local_stack.process_spec import ProcessSpec
from local_stack.running_stack import run_stack
from local_stack.settings import Settings
from local_stack.specs import probe_http
from local_stack.stack_file import Credentials
from testkit import processes

SLEEPS = "import time; time.sleep(600)"
STARTS_A_CHILD = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPS!r}])"


def small_stack(settings: Settings) -> tuple[Sequence[ProcessSpec], Mapping[str, Credentials]]:
    """Returns a web server, and a parent with a child; the parent counts as ready while the server is."""
    port = str(settings.edge_1_port)
    probe = partial(probe_http, f"http://127.0.0.1:{port}/")
    server = (sys.executable, "-m", "http.server", port, "--bind", "127.0.0.1", "--directory", str(settings.files.data))
    specs = [
        ProcessSpec("server", server, probe=probe, stops_last=True),
        ProcessSpec("parent", (sys.executable, "-c", STARTS_A_CHILD), probe=probe, after=("server",)),
    ]
    return specs, {}


def start_small(_: Sequence[str], log_file: Path, environment: Mapping[str, str]) -> processes.Popen:
    """Starts a supervisor of the small stack where `start_stack` would start one of the whole stack."""
    return processes.start([sys.executable, __file__], log_file, environment)


if __name__ == "__main__":
    try:
        run_stack(Settings(), small_stack)
    except LocalStackError as error:
        sys.exit(str(error))
