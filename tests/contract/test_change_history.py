"""The results of the models from a change log."""

from functools import cache
from typing import Any

import pytest
from drivers.change_history import History, ordered, primary_key, rows_after
from drivers.pipeline_models import MODELS

from cdc_simulator.change_events import LoggedChange, change_event
from cdc_simulator.domain import DatabaseParameters, next_mutation
from cdc_simulator.domains import choose_domain, domain_names
from statecast.portfolio.v1.open_position_pb2 import OpenPosition, OpenPositionChange
from testkit.cdc_simulator import MemoryRows, memory_tables

NOW_US = 1_724_848_496_123_456
PARAMETERS = DatabaseParameters(seed=3, rows=60, customers=9, items=12)


def positions() -> History:
    history = History(OpenPositionChange, "open_positions")
    history.snapshot(OpenPosition(position_id="a", amount=1))
    history.create(OpenPosition(position_id="b", amount=2))
    history.update("a", amount=3)
    history.delete("b")
    return history


def test_rows_are_what_the_last_changes_left() -> None:
    assert rows_after(positions().changes) == [OpenPosition(position_id="a", amount=3)]


def test_repetitions_and_disorder_change_nothing() -> None:
    changes = positions().changes
    shuffled = [*reversed(changes), *changes[1:3]]

    assert ordered(shuffled) == changes
    assert rows_after(shuffled) == rows_after(changes)


def test_a_row_that_comes_back_is_there() -> None:
    history = positions()
    history.create(OpenPosition(position_id="b", amount=7))

    assert {row.position_id: row.amount for row in rows_after(history.changes)} == {"a": 3, "b": 7}


def test_a_higher_epoch_comes_after_all_of_a_lower_one() -> None:
    later = History(OpenPositionChange, "open_positions", epoch=2)
    later.snapshot(OpenPosition(position_id="a", amount=9))

    assert rows_after([*later.changes, *positions().changes]) == [OpenPosition(position_id="a", amount=9)]


@cache
def simulated(name: str) -> tuple[dict[str, MemoryRows], dict[str, list[Any]]]:
    """Returns the tables after some changes, and the changes of each, by the table's name."""
    domain = choose_domain(name)
    tables = memory_tables(domain, PARAMETERS, NOW_US)
    definitions = {table.name: table for table in domain.tables}
    changes: dict[str, list[Any]] = {name: [] for name in tables}
    inserts = list(domain.initial_rows(PARAMETERS, NOW_US))
    for lsn, insert in enumerate(inserts, 1):
        snapshot = LoggedChange(definitions[insert.table], lsn, "", NOW_US, True, None, insert.after)
        changes[insert.table].append(change_event(snapshot, 1, NOW_US))
    for lsn in range(len(inserts) + 1, len(inserts) + 1501):
        mutation = next_mutation(domain, tables, PARAMETERS, lsn, NOW_US)
        tables[mutation.table].apply(mutation)
        change = LoggedChange(definitions[mutation.table], lsn, "", NOW_US, False, mutation.before, mutation.after)
        if (event := change_event(change, 1, NOW_US)) is not None:
            changes[mutation.table].append(event)
    return tables, changes


@pytest.mark.parametrize("name", domain_names())
def test_the_rows_after_a_simulators_changes_are_its_tables(name: str) -> None:
    tables, changes = simulated(name)

    for table in (each for each in choose_domain(name).tables if not each.has_events):
        expected = {table.row_id(row): table.message(row) for row in tables[table.name].rows.values()}
        assert {primary_key(row): row for row in rows_after(changes[table.name])} == expected


@pytest.mark.parametrize("pipeline", MODELS)
def test_a_simulators_changes_come_to_what_each_pipeline_is_for(pipeline: str) -> None:
    model = MODELS[pipeline]
    _, changes = simulated(model.domain)
    topics = {table.topic: (changes[table.name], table.value) for table in choose_domain(model.domain).tables}

    assert {topic: topics[topic][1] for topic in model.sources} == model.sources
    assert model.expected([change for topic in model.sources for change in topics[topic][0]])
