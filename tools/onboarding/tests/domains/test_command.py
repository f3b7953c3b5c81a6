"""`statecast plan` and `statecast apply`, which fit a system to the files of its domains."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from kafka_topics.topics_file import read_topics
from query_service.storage.stores_file import read_stores
from statecast_domains.derivation import derive
from statecast_domains.domain import read_domains
from statecast_onboarding.domains.command import apply, plan
from statecast_onboarding.domains.difference import of_served
from statecast_service.kafka import KafkaSettings
from statecast_service.kafka_cluster import Cluster

SHIPPED = Path(__file__).parents[4] / "domains"


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    """A domain of one pipeline, with topics of its own."""
    prefix, directory = f"p{uuid4().hex[:8]}.", tmp_path / "shop"
    directory.mkdir()
    (directory / "domain.yaml").write_text(
        f"topic_prefix: {prefix}\ntopics: [{{name: {prefix}orders, writers: [shop]}}]\n"
    )
    (directory / "orders.yaml").write_text(f"""\
name: orders-by-key
source: {{topic: {prefix}orders, message: statecast.orders.v1.OrderChange}}
group_by: order_id
keep: latest
sink: {{topic: {prefix}orders-by-key, partitions: 2}}
store: {{readers: {{field: customer_id}}}}
""")
    return directory


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], list[str]]:
    """The lines of standard output, then of standard error, since it was called last."""

    def lines() -> list[str]:
        captured = capsys.readouterr()
        # A busy broker is waited for, which is said, too.
        return [line for line in (captured.out + captured.err).splitlines() if not line.startswith("waiting for")]

    return lines


def edited(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


@pytest.mark.kafka
def test_a_system_is_what_its_files_say_once_they_were_applied(
    domain: Path, kafka: str, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    out = tmp_path / "out"
    arguments = [str(domain), "--kafka", kafka, "--out", str(out)]

    assert plan(arguments) == 1
    planned = said()
    assert apply([*arguments, "--replication-factor", "1"]) == 0
    applied = said()
    assert plan(arguments) == 0

    assert said() == ["nothing differs: 6 topics, 3 stores"]
    assert plan([str(domain)]) == 0
    assert said() == ["the files are sound: 6 topics, 3 stores; name --kafka, --query or --out to compare them"]
    assert applied[: len(planned)] == planned
    assert any(
        line.startswith("+ topic ") and "orders-by-key: 2 partitions, cleanup.policy=compact" in line
        for line in planned
    )
    names = [topic.name for topic in read_topics(out / "topics.yaml")]
    topics = Cluster(KafkaSettings(kafka_bootstrap=kafka), 30).topics(names)
    assert {name: topic.partitions for name, topic in topics.items() if "by-key" in name} == {names[2]: 2}


@pytest.mark.kafka
def test_a_new_number_of_partitions_is_refused_and_nothing_is_done(
    domain: Path, kafka: str, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    arguments = [str(domain), "--kafka", kafka, "--out", str(tmp_path / "out")]
    assert apply([*arguments, "--replication-factor", "1"]) == 0
    before = (tmp_path / "out" / "topics.yaml").read_text()
    edited(domain / "orders.yaml", "partitions: 2", "partitions: 3")

    assert apply([*arguments, "--allow-removals"]) == 1
    assert any("nothing is done" in line and "has 2 partitions, the file says 3" in line for line in said())
    assert (tmp_path / "out" / "topics.yaml").read_text() == before


def test_what_is_written_is_what_each_service_takes(tmp_path: Path) -> None:
    assert apply([str(SHIPPED), "--out", str(tmp_path), "--configmap"]) == 0

    assert len(read_topics(tmp_path / "topics.yaml")) > 20
    assert len(read_stores(tmp_path / "stores.yaml")) > 15
    pipelines, stores = yaml.safe_load_all((tmp_path / "configmaps.yaml").read_text())
    assert (pipelines["metadata"]["name"], stores["metadata"]["name"]) == ("pipelines", "stores")
    assert pipelines["data"]["orders-by-key.yaml"] == (SHIPPED / "orders" / "orders-by-key.yaml").read_text()
    assert stores["data"]["stores.yaml"] == (tmp_path / "stores.yaml").read_text()
    assert {path.name for path in tmp_path.iterdir()} == {
        *("topics.yaml", "stores.yaml", "configmaps.yaml"),
    }


def test_who_may_read_and_what_is_new_is_said_before_it_is_applied(
    domain: Path, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    out = tmp_path / "out"
    apply([str(domain), "--out", str(out)])
    said()
    edited(domain / "orders.yaml", "{field: customer_id}", "everyone")

    assert plan([str(domain), "--out", str(out)]) == 1
    assert said() == [
        f"~ {out}/stores.yaml: orders-by-key: readers is {{'field': 'customer_id'}}, and will be everyone",
    ]


def test_a_removal_is_named_and_refused_unless_it_is_asked_for(
    domain: Path, tmp_path: Path, said: Callable[[], list[str]]
) -> None:
    out = tmp_path / "out"
    apply([str(domain), "--out", str(out)])
    (domain / "orders.yaml").unlink()
    said()

    assert apply([str(domain), "--out", str(out)]) == 1
    assert any(line.startswith(f"- {out}/stores.yaml: orders-by-key: no file names it") for line in said())
    assert "orders-by-key" in (out / "stores.yaml").read_text()
    assert apply([str(domain), "--out", str(out), "--allow-removals"]) == 0
    assert "orders-by-key" not in (out / "stores.yaml").read_text()


def test_stores_that_are_served_are_compared(domain: Path) -> None:
    stores = derive(read_domains([domain])).stores
    served = {store.name: store.topic for store in stores[1:]} | {"revoked-consumers": "other", "old": "old"}

    lines = [str(each) for each in of_served(stores, served)]

    assert lines == [
        "+ store orders-by-key: is not served yet",
        f"~ store revoked-consumers: is served from other, the files say {stores[-1].topic}",
        "- store old: is served, and no file names it any more",
    ]


@pytest.mark.parametrize("command", [plan, apply])
def test_a_wrong_file_is_named(
    domain: Path, tmp_path: Path, said: Callable[[], list[str]], command: Callable[[list[str]], int]
) -> None:
    edited(domain / "orders.yaml", "readers:", "raeders:")

    assert command([str(domain), "--out", str(tmp_path / "out")]) == 2
    assert said() == [f"statecast: {domain}/orders.yaml: store.raeders: unknown key; did you mean readers?"]
    assert not (tmp_path / "out").exists()
