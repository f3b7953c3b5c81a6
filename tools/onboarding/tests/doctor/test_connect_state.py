"""Problems that keep a connector from working at Connect."""

from collections.abc import Mapping

import pytest

from statecast_onboarding.doctor.connect_state import running_connector, shared_parts
from statecast_onboarding.doctor.connector_checks import BINLOG_CLASSES, CONNECTOR_CLASS

SHOP = {"connector.class": CONNECTOR_CLASS, "database.hostname": "db", "database.dbname": "shop"}


@pytest.mark.parametrize(
    ("other", "shared"),
    [
        ({}, ["slot.name", "publication.name"]),
        ({"slot.name": "other"}, ["publication.name"]),
        ({"slot.name": "other", "publication.name": "dbz_publication"}, ["publication.name"]),
        ({"slot.name": "other", "publication.name": "other"}, []),
        ({"database.dbname": "other"}, []),
        ({"connector.class": "org.example.Sink"}, []),
    ],
)
def test_two_connectors_of_a_database_need_a_slot_and_a_publication_each(
    other: Mapping[str, str], shared: list[str]
) -> None:
    findings = shared_parts("shop", SHOP, {"shop": SHOP, "other": {**SHOP, **other}})

    assert [finding.subject for finding in findings] == shared


@pytest.mark.parametrize("url", ["http://me:s3cret@127.0.0.1:1", "http://me:s3cret@[::1", "me:s3cret@connect:8083"])
def test_a_connect_that_does_not_answer_is_named_without_its_password(url: str) -> None:
    [finding] = running_connector(url, "shop").findings

    assert (finding.level, finding.subject) == ("FAIL", "connect")
    assert "s3cret" not in finding.text


def test_a_binlog_is_read_by_any_number() -> None:
    config = {**SHOP, "connector.class": BINLOG_CLASSES[0]}

    assert not list(shared_parts("shop", config, {"other": config}))
