"""Commands that a release, or somebody who installs one, would run."""

import os
import subprocess
from pathlib import Path


def run(directory: Path, *command: str, **environment: str) -> str:
    """Runs a command without the variables of make and of pytest, and returns its output. It must succeed."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST", "MFLAGS"))}
    ended = subprocess.run(
        command, cwd=directory, env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{' '.join(command)}: {ended.stdout[-5000:]}{ended.stderr[-5000:]}"
    return ended.stdout
