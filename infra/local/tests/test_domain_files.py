"""The services' files about the domains that run."""

from pathlib import Path

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from local_stack import LocalStackError, domain_files
from local_stack.domain_files import (
    STORES,
    TOPICS,
    domains_directory,
    system_file,
    write_domain_files,
)
from local_stack.settings import Settings

OF_EDGES = {"push-channels", "revoked-consumers"}


def stores(file: Path) -> set[str]:
    return {each["name"] for each in yaml.safe_load(file.read_text())["stores"]}


def test_topics_and_stores_are_those_of_the_chosen_domains_and_of_every_system(tmp_path: Path) -> None:
    settings = Settings(directory=tmp_path, domain="odds,positions")
    write_domain_files(settings)
    topics = {topic.name for topic in read_topics(system_file(settings, TOPICS))}
    served = {"odds-by-match", "matches-about-to-start", "us-share-holders"}

    assert {"matches", "markets", "markets.dead-letter", "open-positions"} | served | OF_EDGES | {"job-runs"} <= topics
    assert not any(name.startswith(("orders", "bookings", "invoices")) for name in topics)
    assert served | OF_EDGES <= stores(system_file(settings, STORES))


def test_domains_that_do_not_go_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("odds", "orders"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "domain.yaml").write_text("topics: [{name: changes}]\n")
    monkeypatch.setattr(domain_files, "DOMAINS", tmp_path)

    with pytest.raises(LocalStackError, match=r"orders/domain.yaml: .*changes"):
        write_domain_files(Settings(directory=tmp_path, domain="orders,odds"))


def test_the_chosen_domains_stand_where_a_persons_own_may_be_put(tmp_path: Path) -> None:
    settings = Settings(directory=tmp_path, domain="orders,odds")
    write_domain_files(settings)
    own = domains_directory(settings) / "parcels"
    own.mkdir()
    declared = "topics: [{name: parcels}]\nstores: [{name: parcels, topic: parcels, message: json}]\n"
    (own / "domain.yaml").write_text(declared)
    again = Settings(directory=tmp_path, domain="orders")
    write_domain_files(again)

    assert {each.name for each in domains_directory(again).iterdir()} == {"orders", "parcels"}
    assert (domains_directory(again) / "orders" / "orders-by-key.yaml").exists()
    assert {"orders-by-key", "parcels"} <= stores(system_file(again, STORES))
