"""The mutations that the workload decides on."""

from collections import Counter

from cdc_simulator.initial_rows import initial_rows
from cdc_simulator.life_cycle import is_finished
from cdc_simulator.order_row import OrderRow, Shop
from cdc_simulator.testing import MemoryTable
from cdc_simulator.workload import Delete, Insert, Mutation, Update, next_mutation

NOW_US = 1_724_848_496_123_456


def new_table(shop: Shop) -> MemoryTable:
    return MemoryTable(initial_rows(shop, NOW_US), shop.orders + 1)


def make(table: MemoryTable, shop: Shop, first: int, last: int, now_us: int = NOW_US) -> list[Mutation]:
    """Makes the mutations with these log sequence numbers."""
    mutations = []
    for lsn in range(first, last + 1):
        mutation = next_mutation(table, shop, lsn, now_us + lsn)
        table.apply(mutation)
        mutations.append(mutation)
    return mutations


def test_the_same_seed_makes_the_same_mutations_and_another_seed_others(shop: Shop) -> None:
    mutations = make(new_table(shop), shop, 51, 550)
    other = shop._replace(seed=8)

    assert make(new_table(shop), shop, 51, 550) == mutations
    assert make(new_table(other), other, 51, 550) != mutations


def test_the_time_decides_nothing_but_times(shop: Shop) -> None:
    now = [essence(each) for each in make(new_table(shop), shop, 51, 550)]
    later = [essence(each) for each in make(new_table(shop), shop, 51, 550, NOW_US + 987_654_321)]

    assert later == now


def essence(mutation: Mutation) -> tuple[str, OrderRow]:
    row = mutation.before if isinstance(mutation, Delete) else mutation.after
    return mutation.operation, row._replace(placed_at_us=0, updated_at_us=0, estimated_delivery="")


def test_a_table_that_is_read_again_from_its_rows_goes_on_identically(shop: Shop) -> None:
    whole = make(new_table(shop), shop, 51, 550)
    table = new_table(shop)
    make(table, shop, 51, 300)
    read_again = MemoryTable(table.rows.values(), table.next_number)

    assert make(read_again, shop, 301, 550) == whole[250:]


def test_each_mutation_starts_from_the_row_as_it_stands(shop: Shop) -> None:
    table = new_table(shop)
    for lsn in range(51, 1051):
        mutation = next_mutation(table, shop, lsn, NOW_US)
        if not isinstance(mutation, Insert):
            assert table.rows[mutation.before.number] == mutation.before
        else:
            assert mutation.after.number == table.next_number
        table.apply(mutation)


def test_only_finished_orders_are_deleted(shop: Shop) -> None:
    deleted = [each.before for each in make(new_table(shop), shop, 51, 1050) if isinstance(each, Delete)]

    assert deleted
    assert all(is_finished(row) for row in deleted)


def test_finished_orders_stay_as_they_are_until_they_are_deleted(shop: Shop) -> None:
    updated = [each.before for each in make(new_table(shop), shop, 51, 1050) if isinstance(each, Update)]

    assert not any(is_finished(row) for row in updated)


def test_the_table_stays_about_its_size_and_everything_happens_often(shop: Shop) -> None:
    table, wanted = new_table(shop._replace(orders=200)), shop._replace(orders=200)
    operations: Counter[str] = Counter()
    sizes = []
    for lsn in range(201, 6201):
        operations[make(table, wanted, lsn, lsn)[0].operation] += 1
        sizes.append(len(table))

    assert 150 <= min(sizes) <= max(sizes) <= 250
    assert operations["create"] > 400
    assert operations["delete"] > 400
    assert operations["update"] > 3500


def test_an_empty_table_gets_a_row(shop: Shop) -> None:
    mutation = next_mutation(MemoryTable([], 9), shop, 1, NOW_US)

    assert isinstance(mutation, Insert)
    assert mutation.after.number == 9


def test_a_table_of_finished_orders_moves_on(shop: Shop) -> None:
    finished = [row for row in initial_rows(shop._replace(orders=500), NOW_US) if is_finished(row)]
    mutations = [next_mutation(MemoryTable(finished, 501), shop, lsn, NOW_US) for lsn in range(100)]

    assert not any(isinstance(each, Update) for each in mutations)
