"""The steps of rows, and how they keep the size of a table."""

from random import Random
from typing import NamedTuple

from cdc_simulator.domain import DatabaseParameters, Mutation, StepContext
from cdc_simulator.row_life_cycle import RowLifeCycle, Step, another, another_number, delete, take_step
from testkit.cdc_simulator import MemoryRows

RANDOMS = [Random(seed) for seed in range(200)]
NOW_US = 1_724_848_496_123_456


def test_another_is_any_but_the_present_one() -> None:
    assert {another("abc", "b", random) for random in RANDOMS} == {"a", "c"}


def test_another_number_is_any_but_the_present_one() -> None:
    assert {another_number(4, 2, random) for random in RANDOMS} == {1, 3, 4}


def test_another_number_is_the_same_when_there_is_no_other() -> None:
    assert {another_number(1, 1, random) for random in RANDOMS} == {1}


def test_steps_are_taken_by_their_weights(parameters: DatabaseParameters) -> None:
    steps = (Step(75, lambda row, _: row + 1), Step(25, delete), Step(0, lambda row, _: -row))
    taken = [take_step(1, steps, StepContext(random, parameters, 0)) for random in RANDOMS]

    assert set(taken) == {2, None}
    assert 100 < taken.count(2) < 190


class Plant(NamedTuple):
    number: int
    height: int
    changed_at_us: int


def sow(number: int, context: StepContext) -> Plant:
    return Plant(number, 0, context.now_us)


def grow(row: Plant, context: StepContext) -> Plant | None:
    return None if row.height == 3 else row._replace(height=row.height + 1, changed_at_us=context.now_us)


def stay(row: Plant, _context: StepContext) -> Plant:
    return row._replace()


PLANT_LIFE_CYCLE = RowLifeCycle("plants", sow, (Step(1, grow),), 0.2)


def next_mutations(
    rows: MemoryRows, parameters: DatabaseParameters, count: int, life_cycle: RowLifeCycle[Plant] = PLANT_LIFE_CYCLE
) -> list[Mutation]:
    """Returns the next mutation for each of this many random seeds."""
    contexts = [StepContext(Random(seed), parameters, NOW_US) for seed in range(count)]
    return [life_cycle.next_mutation({"plants": rows}, context) for context in contexts]


def test_a_row_is_created_changes_and_ends(parameters: DatabaseParameters) -> None:
    rows = MemoryRows([Plant(1, 0, 0), Plant(2, 3, 0)])
    mutations = set(next_mutations(rows, parameters._replace(rows=2), 50))

    assert mutations == {
        Mutation("plants", None, Plant(3, 0, NOW_US)),
        Mutation("plants", Plant(1, 0, 0), Plant(1, 1, NOW_US)),
        Mutation("plants", Plant(2, 3, 0), None),
    }


def test_an_empty_table_gets_a_row(parameters: DatabaseParameters) -> None:
    assert next_mutations(MemoryRows([], 9), parameters, 1) == [Mutation("plants", None, Plant(9, 0, NOW_US))]


def test_a_table_where_nothing_happens_gets_a_row(parameters: DatabaseParameters) -> None:
    rows = MemoryRows([Plant(number, 0, 0) for number in range(1, 4)])
    still = RowLifeCycle("plants", sow, (Step(1, stay),), 0.2)

    assert set(next_mutations(rows, parameters._replace(rows=3), 20, still)) == {
        Mutation("plants", None, Plant(4, 0, NOW_US))
    }


def test_new_rows_come_until_there_are_enough(parameters: DatabaseParameters) -> None:
    few, many = (MemoryRows([Plant(number, 0, 0) for number in range(1, count + 1)]) for count in (10, 20))
    new = [
        sum(mutation.operation == "create" for mutation in next_mutations(rows, parameters._replace(rows=10), 200))
        for rows in (few, many)
    ]

    assert new[0] > 20
    assert new[1] == 0


def test_initial_rows_have_taken_steps_before_the_beginning(parameters: DatabaseParameters) -> None:
    rows = [insert.after for insert in PLANT_LIFE_CYCLE.initial_rows(parameters._replace(rows=200), NOW_US)]

    assert [row.number for row in rows] == list(range(1, 201))
    assert {row.height for row in rows} == {0, 1, 2, 3}
    assert all(row.changed_at_us < NOW_US for row in rows)
