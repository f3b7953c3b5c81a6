"""The common life of rows."""

from random import Random
from typing import NamedTuple

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.life import Life, grown_rows, next_of_life
from cdc_simulator.mutation import Delete, Insert, Update
from cdc_simulator.testing import MemoryRows

NOW_US = 1_724_848_496_123_456


class Plant(NamedTuple):
    number: int
    height: int
    changed_at_us: int


def sow(number: int, moment: Moment) -> Plant:
    return Plant(number, 0, moment.now_us)


def grow(row: Plant, moment: Moment) -> Plant | None:
    return None if row.height == 3 else row._replace(height=row.height + 1, changed_at_us=moment.now_us)


def stay(row: Plant, _moment: Moment) -> Plant:
    return row._replace()


PLANT_LIFE = Life("plants", sow, grow, 0.2)


def moments(basis: Basis, count: int) -> list[Moment]:
    return [Moment(Random(seed), basis, NOW_US) for seed in range(count)]


def test_a_row_begins_goes_on_and_ends(basis: Basis) -> None:
    rows = MemoryRows([Plant(1, 0, 0), Plant(2, 3, 0)])
    mutations = {next_of_life(rows, PLANT_LIFE, 2, moment) for moment in moments(basis, 50)}

    assert mutations == {
        Insert("plants", Plant(3, 0, NOW_US)),
        Update("plants", Plant(1, 0, 0), Plant(1, 1, NOW_US)),
        Delete("plants", Plant(2, 3, 0)),
    }


def test_an_empty_table_gets_a_row(basis: Basis) -> None:
    mutation = next_of_life(MemoryRows([], 9), PLANT_LIFE, 50, moments(basis, 1)[0])

    assert mutation == Insert("plants", Plant(9, 0, NOW_US))


def test_a_table_where_nothing_happens_gets_a_row(basis: Basis) -> None:
    rows = MemoryRows([Plant(number, 0, 0) for number in range(1, 4)])
    still = Life("plants", sow, stay, 0.2)

    assert {next_of_life(rows, still, 3, moment) for moment in moments(basis, 20)} == {
        Insert("plants", Plant(4, 0, NOW_US))
    }


def test_new_rows_come_until_there_are_enough(basis: Basis) -> None:
    few, many = (MemoryRows([Plant(number, 0, 0) for number in range(1, count + 1)]) for count in (10, 20))
    chances = moments(basis, 200)
    new = [
        sum(isinstance(next_of_life(rows, PLANT_LIFE, 10, moment), Insert) for moment in chances)
        for rows in (few, many)
    ]

    assert new[0] > 20
    assert new[1] == 0


def test_grown_rows_have_lived_a_while_before_the_beginning(basis: Basis) -> None:
    rows = [insert.after for insert in grown_rows(PLANT_LIFE, 200, basis, NOW_US)]

    assert [row.number for row in rows] == list(range(1, 201))
    assert {row.height for row in rows} == {0, 1, 2, 3}
    assert all(row.changed_at_us < NOW_US for row in rows)
