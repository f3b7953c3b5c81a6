"""The stores file is checked against the contract."""

from pathlib import Path

import pytest

from query_service.errors import StoresFileError
from query_service.settings import SHIPPED_STORES
from query_service.stores_file import read_stores

STORE = "{name: a, topic: a, message: statecast.orders.v1.Order}"


def test_the_shipped_file_has_the_three_stores_of_orders() -> None:
    assert [(store.name, store.topic, store.message) for store in read_stores(SHIPPED_STORES)] == [
        (name, name, "statecast.orders.v1.Order") for name in ("orders-by-customer", "orders-by-item", "orders-by-key")
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("stores: [", "is not YAML"),
        ("", "the file: "),
        ("stores: []", "stores is empty"),
        ("shops: []", r"shops is not known: did you mean `stores`\?"),
        ("stores: [{name: a, topic: a}]", r"stores\[0\]\.message: Field required"),
        ("stores: [{name: a, topic: a, mesage: x}]", r"stores\[0\]\.mesage is not known: did you mean `message`\?"),
        ("stores: [{name: a b, topic: a, message: m}]", r"stores\[0\]\.name: "),
        (
            "stores: [{name: a, topic: a, message: statecast.orders.v1.Ordre}]",
            r"stores\[0\]\.message `statecast\.orders\.v1\.Ordre` .* did you mean `statecast\.orders\.v1\.Order`\?",
        ),
        (f"stores: [{STORE}, {STORE}]", r"stores\[1\]\.name `a` is there twice"),
        (f"stores: [{STORE}, {STORE.replace('name: a', 'name: b')}]", r"stores\[1\]\.topic `a` is another store's"),
    ],
)
def test_a_wrong_file_is_refused_with_one_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "stores.yaml"
    path.write_text(text)

    with pytest.raises(StoresFileError, match=complaint) as raised:
        read_stores(path)

    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoresFileError, match=r"none\.yaml cannot be read: No such file"):
        read_stores(tmp_path / "none.yaml")
