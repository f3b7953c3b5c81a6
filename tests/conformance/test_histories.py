"""Random histories in PostgreSQL, through Debezium and the processor: what is served equals SQL."""

import pytest
from kit.histories import statements

pytestmark = pytest.mark.timeout(3600)


@pytest.mark.stack
def test_latest_members_and_sums_of_all_histories_are_what_sql_has(histories: list[str]) -> None:
    assert histories == [], "\n".join(histories)


def test_a_seed_and_a_number_decide_a_history() -> None:
    assert statements(17, seed=3) == statements(17, seed=3)
    assert statements(17, seed=3) != statements(17, seed=4)
