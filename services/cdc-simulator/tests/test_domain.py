"""The mutations that the workloads of all domains decide on."""

import re
from collections import Counter

import pytest

from cdc_simulator.domain import DatabaseParameters, Domain, Mutation, next_mutation
from cdc_simulator.domains import choose_domain, domain_names
from testkit.cdc_simulator import MemoryRows, memory_tables

NOW_US = 1_724_848_496_123_456
TIMES = re.compile(r"(\w+_us|estimated_delivery)='?[\d-]+")


@pytest.fixture(params=domain_names())
def domain(request: pytest.FixtureRequest) -> Domain:
    return choose_domain(request.param)


class Workload:
    """The tables of a domain in memory, and their mutations from the first change after the snapshot."""

    def __init__(self, domain: Domain, parameters: DatabaseParameters, now_us: int = NOW_US) -> None:
        self.domain, self.parameters, self.now_us = domain, parameters, now_us
        self.tables = memory_tables(domain, parameters, now_us)
        self.lsn = sum(map(len, self.tables.values()))

    def make(self, count: int) -> list[Mutation]:
        return [self.step() for _ in range(count)]

    def step(self) -> Mutation:
        self.lsn += 1
        mutation = next_mutation(self.domain, self.tables, self.parameters, self.lsn, self.now_us + self.lsn)
        self.check(mutation)
        self.tables[mutation.table].apply(mutation)
        return mutation

    def check(self, mutation: Mutation) -> None:
        rows = self.tables[mutation.table].rows
        if mutation.operation == "create":
            assert mutation.after.number not in rows
        else:
            assert rows[mutation.before.number] == mutation.before


def test_the_same_seed_makes_the_same_mutations_and_another_seed_others(
    domain: Domain, parameters: DatabaseParameters
) -> None:
    mutations = Workload(domain, parameters).make(500)

    assert Workload(domain, parameters).make(500) == mutations
    assert Workload(domain, parameters._replace(seed=8)).make(500) != mutations


def test_the_time_decides_nothing_but_times(domain: Domain, parameters: DatabaseParameters) -> None:
    now = [TIMES.sub("", repr(each)) for each in Workload(domain, parameters).make(500)]
    later = [TIMES.sub("", repr(each)) for each in Workload(domain, parameters, NOW_US + 987_654_321).make(500)]

    assert later == now


def test_tables_that_are_read_again_from_their_rows_go_on_identically(
    domain: Domain, parameters: DatabaseParameters
) -> None:
    whole = Workload(domain, parameters).make(500)
    workload = Workload(domain, parameters)
    workload.make(250)
    workload.tables = {name: MemoryRows(rows.rows.values(), rows.next_number) for name, rows in workload.tables.items()}

    assert workload.make(250) == whole[250:]


def test_an_update_changes_the_row_and_never_its_primary_key(domain: Domain, parameters: DatabaseParameters) -> None:
    for mutation in Workload(domain, parameters).make(1000):
        if mutation.operation == "update":
            assert mutation.after.number == mutation.before.number
            assert mutation.after != mutation.before


def test_every_table_keeps_about_its_size_and_everything_happens_often(
    domain: Domain, parameters: DatabaseParameters
) -> None:
    workload = Workload(domain, parameters._replace(rows=200))
    operations: Counter[str] = Counter()
    for _ in range(6):
        operations.update(mutation.operation for mutation in workload.make(1000))

        assert 150 <= len(workload.tables[main_table(domain)]) <= 250
        assert all(len(rows) < 1000 for rows in workload.tables.values())
    assert operations["create"] > 400
    assert operations["delete"] > 400
    assert operations["update"] > 3000 or has_events(domain)


def has_events(domain: Domain) -> bool:
    """Returns whether the rows of the main table never change."""
    return any(table.has_events for table in domain.tables if table.name == main_table(domain))


def main_table(domain: Domain) -> str:
    return {"odds": "matches", "invoices": "invoices"}.get(domain.name, domain.tables[0].name)


def test_rows_lie_in_the_past_of_their_beginning(domain: Domain, parameters: DatabaseParameters) -> None:
    for _, _, row in domain.initial_rows(parameters, NOW_US):
        for field in ("placed_at_us", "updated_at_us", "booked_at_us", "created_at_us"):
            assert getattr(row, field, 0) <= NOW_US


def test_a_single_customer_is_enough(domain: Domain, parameters: DatabaseParameters) -> None:
    assert len(Workload(domain, parameters._replace(rows=1, customers=1, items=1)).make(200)) == 200
