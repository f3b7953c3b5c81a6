"""Chosen cases run side by side, in a few rounds, before the first of their tests; random histories beside them."""

import pytest
from kit.case import Case
from kit.results import Results


@pytest.fixture(scope="session")
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The results of the chosen cases, and of the random histories if they are chosen."""
    parameters = [getattr(item, "callspec", None) for item in request.session.items]
    cases = [each.params["case"] for each in parameters if each and isinstance(each.params.get("case"), Case)]
    return Results(cases, tmp_path_factory.mktemp("conformance"))
