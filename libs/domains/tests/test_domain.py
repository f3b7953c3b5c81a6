"""Reading a domain's directory, and refusing a wrong one."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from statecast_domains.domain import read_domains
from statecast_domains.domain_file import read_domain_file, schema_text
from statecast_domains.errors import DomainFileError, PipelineFileError

DOMAINS = Path(__file__).parents[3] / "domains"


def test_the_shipped_domains_are_read_each_once() -> None:
    domains = read_domains([DOMAINS, DOMAINS / "odds"])

    assert [domain.name for domain in domains] == ["bookings", "invoices", "odds", "orders", "positions"]
    assert all(domain.pipelines and domain.file.topics for domain in domains)


def test_the_shipped_schema_is_current_and_the_files_fit_it() -> None:
    """If this fails, run `make reference`."""
    assert (DOMAINS / "domain.schema.json").read_text() == schema_text()
    for domain in read_domains([DOMAINS]):
        jsonschema.validate(yaml.safe_load(domain.domain_file.read_text()), yaml.safe_load(schema_text()))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("topcs: []", "topcs: unknown key; did you mean topics?"),
        ("topics: [{name: a, partition: 4}]", r"topics\[0\].partition: unknown key; did you mean partitions?"),
        ("topics: [{name: a, partitions: 0}]", r"topics\[0\].partitions: Input should be greater"),
        ("topics: [{name: a, retention: soon}]", r"topics\[0\].retention: 'soon' is not a duration"),
        ("topic_prefix: acme/", "topic_prefix: 'acme/' begins no topic"),
        ("stores: [{name: a, topic: a}]", r"stores\[0\].message: is missing"),
        ("stores: [{name: a, topic: a, message: json, partitioner: md5}]", r"stores\[0\].partitioner: 'md5' is not"),
        ("stores: [{name: a, topic: a, message: json, readers: al}]", r"stores\[0\].readers: 'al' is not supported; "),
        (
            "stores: [{name: a, topic: a, message: json, readers: {feld: b}}]",
            r"stores\[0\].readers.feld: unknown key; did you mean field?",
        ),
        ("stores: [{name: a, topic: a, message: bytes, readers: everyone}]", r"stores\[0\].readers: has no meaning"),
        ("stores: [{name: a, topic: a, message: json, history: {}}]", r"stores\[0\].history: takes either versions or"),
        ("- a", "is not a domain"),
    ],
)
def test_a_wrong_key_or_value_of_a_domain_is_named(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "domain.yaml"
    file.write_text(text)

    with pytest.raises(DomainFileError, match=f"{file}: {problem}"):
        read_domain_file(file)


def test_keys_of_a_pipeline_that_do_not_go_together_are_named(tmp_path: Path) -> None:
    text = (DOMAINS / "odds" / "odds-by-match.yaml").read_text()
    (tmp_path / "odds.yaml").write_text(text.replace("readers: everyone", "readers: {field: owner, group: true}"))

    with pytest.raises(
        PipelineFileError, match=r"odds.yaml: store.readers.group: is true, but keys are grouped by match"
    ):
        read_domains([tmp_path])


def test_a_directory_without_a_domain_is_named(tmp_path: Path) -> None:
    with pytest.raises(DomainFileError, match=f"{tmp_path}: has no domain"):
        read_domains([tmp_path])
    with pytest.raises(DomainFileError, match="nowhere: is not a directory"):
        read_domains([tmp_path / "nowhere"])
