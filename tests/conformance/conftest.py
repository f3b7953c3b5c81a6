"""All chosen cases run once, side by side, before the first of their tests; random histories beside them."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from kit.case import Case
from kit.run import Run

HISTORIES = int(os.environ.get("HISTORIES", "200"))
"""How many random histories are played."""

Results = Mapping[str, list[str]]


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Results]:
    """By each chosen case, what is not as it says."""
    parameters = (getattr(item, "callspec", None) for item in request.session.items)
    chosen = [each.params["case"] for each in parameters if each and isinstance(each.params.get("case"), Case)]
    played = any("histories" in getattr(item, "fixturenames", ()) for item in request.session.items)
    with ExitStack() as stack:
        yield Run(chosen, HISTORIES if played else 0, tmp_path_factory.mktemp("conformance"), stack).results()


@pytest.fixture(scope="session")
def histories(results: Results) -> list[str]:
    """What of the random histories differs from SQL."""
    return results["histories"]
