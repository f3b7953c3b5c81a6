"""Random histories in PostgreSQL, through Debezium and the processor: the served rows equal SQL."""

import pytest
from kit.case import Case
from kit.histories import CASE, statements
from kit.results import Results


@pytest.mark.stack
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("case", [pytest.param(CASE, id="all")])
def test_latest_members_and_sums_are_what_sql_has(case: Case, results: Results) -> None:
    wrong = results.of(case)

    assert wrong == [], "\n".join(wrong)


def test_a_seed_and_a_number_decide_a_history() -> None:
    assert statements(17, seed=3) == statements(17, seed=3)
    assert statements(17, seed=3) != statements(17, seed=4)
