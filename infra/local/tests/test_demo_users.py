"""The demo users."""

from pathlib import Path

import pytest

from local_stack.demo_users import read_demo_users
from local_stack.errors import LocalStackError
from local_stack.gateway import KONG_FILE


def test_the_gateways_file_names_customers_and_staff() -> None:
    users = read_demo_users(KONG_FILE)

    alice = users["alice"]
    assert alice.customer_id == "customer-0001"
    assert alice.basic is not None
    assert alice.key is not None
    assert alice.jwt is not None
    assert any("staff" in user.groups and not user.customer_id for user in users.values())


def test_a_consumer_without_credentials_is_no_demo_user() -> None:
    assert "anonymous" not in read_demo_users(KONG_FILE)


def test_a_file_without_credentials_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "kong.yaml"
    empty.write_text("consumers: [{username: nobody}]")

    with pytest.raises(LocalStackError, match="no consumer with credentials"):
        read_demo_users(empty)
