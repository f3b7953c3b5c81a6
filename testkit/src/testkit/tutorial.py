"""Runs the commands of a documentation page as a person would: its indented shell commands in bash, and its SQL."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path

from testkit import processes
from testkit.waiting import scaled

TIMEOUT_S = 900.0
DONE = "everything was run"
"""The last line of a script after all commands have ended with 0."""

LOG = "log"

_RUN_SQL = (
    "import os, sys, psycopg; "
    'psycopg.connect(os.environ["STATECAST_DATABASE"], autocommit=True).execute(sys.stdin.read().encode())'
)
_BEFORE = f"""\
set -euo pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT
sql() {{ {sys.executable} -c '{_RUN_SQL}'; }}
heading() {{ printf '\\n## %s s: %s\\n' "$SECONDS" "$*"; }}
"""
_HEADING = re.compile(r"^## ([\d.]+) s: (.*)$", re.MULTILINE)


def script_of(page: Path, more_sql: str = "") -> str:
    """Returns a script that ends with DONE and ends all that it started. `more_sql` runs after each SQL of the page.

    SQL goes to the database that `$STATECAST_DATABASE` names.
    """
    return "\n".join([_BEFORE, *_lines(page.read_text(), more_sql), f"heading end; echo {DONE}"])


def run_script(script: str, directory: Path, environment: Mapping[str, str]) -> str:
    """Runs a script and returns its output, also when it fails or is killed after too long.

    Meanwhile the output is in the file `log` of the directory.
    """
    log = directory / LOG
    with log.open("w") as out:
        shell = subprocess.Popen(
            ["bash", "-c", script], cwd=directory, env=environment, stdout=out, stderr=out, start_new_session=True
        )
    try:
        shell.wait(scaled(TIMEOUT_S))
    except subprocess.TimeoutExpired:
        processes.kill_family(shell.pid)
        shell.wait()
    return log.read_text()


def seconds_of(said: str) -> dict[str, int]:
    """Returns the seconds that the commands below each heading took, from a script's output."""
    begun = [(int(each[1]), each[2]) for each in _HEADING.finditer(said)]
    return {name: end - start for (start, name), (end, _) in pairwise(begun)}


def _lines(text: str, more_sql: str) -> Iterator[str]:
    language = ""
    for line in text.splitlines():
        if line.startswith("```"):
            if language == "sql":
                yield f"{more_sql}\nEND_OF_SQL"
            language = "" if language else line.removeprefix("```")
            if language == "sql":
                yield "sql <<'END_OF_SQL'"
        elif language == "sql":
            yield line
        elif line.startswith("## "):
            yield f"heading {shlex.quote(line.removeprefix('## '))}"
        elif line.startswith("    "):
            yield line.removeprefix("    ")
