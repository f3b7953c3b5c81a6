"""Runs `stream-processor check` on the files of one case."""

import os
import subprocess
import sys
from pathlib import Path

from kit.case import Case
from kit.domain_files import write_domain


def check(case: Case, directory: Path) -> str:
    """Returns the refusal of the command; empty when it takes the files."""
    write_domain(case, directory / "messages", directory / "pipelines")
    finished = subprocess.run(
        [sys.executable, "-m", "stream_processor", "check", str(directory / "pipelines")],
        env={**os.environ, "STATECAST_DESCRIPTORS": str(directory / "messages")},
        capture_output=True,
        text=True,
        check=False,
    )
    return finished.stderr if finished.returncode else ""
