"""Input from databases and topics is right, refused or told: each case on real parts, as its file says."""

from collections.abc import Iterator

import pytest
from kit.case import Case, read_cases
from kit.results import Results

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]


def parameters() -> Iterator[object]:
    """Yields each case under its name; one that does not hold yet must fail, until it does."""
    for case in read_cases():
        marks = [pytest.mark.xfail(reason=case.pending, strict=True)] if case.pending else []
        long = [pytest.mark.long] if case.long else []
        yield pytest.param(case, id=f"{case.group}-{case.name}", marks=[*marks, *long])


@pytest.mark.parametrize("case", list(parameters()))
def test_the_case_is_as_it_says(case: Case, results: Results) -> None:
    wrong = results.of(case)

    assert wrong == [], "\n".join(wrong)
