"""Commands that a release, or somebody who installs one, would run."""

import os
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path


def published(tree: Path, wheels: Path, parts: Iterable[str]) -> Mapping[str, str]:
    """Builds the wheels of some parts of the tree into a directory.

    Returns the variables that point pip to it, besides the registry for other packages.
    """
    run(tree, sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), *map("./{}".format, parts))
    return {"PIP_FIND_LINKS": f"{wheels} {os.environ.get('PIP_FIND_LINKS', '')}", "PIP_NO_COMPILE": "1"}


def run(directory: Path, *command: str, **environment: str) -> str:
    """Runs a command without the variables of make and of pytest, and returns its output. It must succeed."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTEST", "MFLAGS"))}
    ended = subprocess.run(
        command, cwd=directory, env=inherited | environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{' '.join(command)}: {ended.stdout[-5000:]}{ended.stderr[-5000:]}"
    return ended.stdout
