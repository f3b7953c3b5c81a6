"""The types of the JavaScript package match the contract, and edges serve its program."""

import subprocess
import sys
from pathlib import Path

from ws_edge.rest.pages import TOP

PACKAGE = Path(__file__).parents[2] / "clients" / "javascript"


def test_the_types_are_made_of_the_contract_as_it_is() -> None:
    command = [sys.executable, "-c", "import make_types; print(make_types.types_text(), end='')"]
    made = subprocess.run(command, cwd=PACKAGE, capture_output=True, text=True, check=True)

    assert (PACKAGE / "contract.d.ts").read_text() == made.stdout


def test_the_edge_serves_the_package_and_no_copy_of_its_own() -> None:
    assert TOP["/statecast.js"].resolve() == PACKAGE / "statecast.js"
