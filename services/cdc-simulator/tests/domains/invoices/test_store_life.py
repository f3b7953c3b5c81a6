"""The life of a store."""

from random import Random

from cdc_simulator.domains.invoices.store_life import STORES, first_store, rename


def test_stores_differ_in_name_and_id() -> None:
    stores = [first_store(number) for number in range(1, STORES + 1)]

    assert len({store.name for store in stores}) == STORES
    assert [store.store_id for store in stores][:2] == ["store-01", "store-02"]


def test_a_store_gets_another_name_and_stays_where_it_is() -> None:
    store = first_store(3)
    renamed = [rename(store, Random(seed)) for seed in range(50)]

    assert store not in renamed
    assert {(each.number, each.city) for each in renamed} == {(3, store.city)}
