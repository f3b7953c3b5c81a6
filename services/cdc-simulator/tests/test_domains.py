"""The choice of a domain."""

import pytest

from cdc_simulator.domains import choose_domain, domain_names


def test_there_are_five() -> None:
    assert domain_names() == ["bookings", "invoices", "odds", "orders", "positions"]


@pytest.mark.parametrize("name", domain_names())
def test_a_domain_is_found_by_its_name(name: str) -> None:
    domain = choose_domain(name)

    assert domain.name == name
    assert len({table.topic for table in domain.tables}) == len(domain.tables)
    assert all(table.fields[0] == "number" for table in domain.tables)


@pytest.mark.parametrize(("name", "advice"), [("order", "did you mean orders?"), ("x", "choose one of them")])
def test_another_name_is_answered_with_the_nearest(name: str, advice: str) -> None:
    with pytest.raises(ValueError, match=f"no domain '{name}' among bookings, invoices, .*") as caught:
        choose_domain(name)

    assert str(caught.value).endswith(advice)
