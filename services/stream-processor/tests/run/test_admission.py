"""Files of pipelines that are refused, and the others."""

from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from statecast_domains.errors import PipelineFileError
from stream_processor.metrics import Metrics
from stream_processor.pipeline.fields import Contract
from stream_processor.run.admission import RefusedFiles, sound_pipelines
from testkit.repository_files import DOMAINS

ORDERS = DOMAINS / "orders"


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def refused(registry: CollectorRegistry) -> RefusedFiles:
    return RefusedFiles(Metrics(registry))


def counted(registry: CollectorRegistry) -> float | None:
    return registry.get_sample_value("stream_processor_refused_files")


def test_a_file_that_is_wrong_or_does_not_fit_the_others_is_refused_alone(
    tmp_path: Path, contract: Contract, registry: CollectorRegistry, refused: RefusedFiles
) -> None:
    sound, wrong, twin = ORDERS / "orders-by-key.yaml", tmp_path / "wrong.yaml", tmp_path / "twin.yaml"
    wrong.write_text("name: wrong")
    twin.write_text(yaml.safe_dump(yaml.safe_load(sound.read_text()) | {"name": "twin"}))
    files = [wrong, sound, twin, ORDERS / "orders-by-item.yaml"]

    assert [each.name for each in sound_pipelines(files, contract, refused)] == ["orders-by-key", "orders-by-item"]
    assert [*refused.errors] == [wrong, twin]
    assert refused.notes()[0] == f"{wrong} is refused: {wrong}: source: is missing"
    assert "is also written by" in refused.notes()[1]
    assert counted(registry) == 2


def test_without_any_sound_file_the_first_error_is_raised(
    tmp_path: Path, contract: Contract, refused: RefusedFiles
) -> None:
    files = [tmp_path / f"{number}.yaml" for number in range(2)]
    for file in files:
        file.write_text("name: wrong")

    with pytest.raises(PipelineFileError, match=r"0\.yaml: source: is missing"):
        refused.check_any_left(sound_pipelines(files, contract, refused))


def test_a_reason_is_logged_once_and_the_file_counts_until_it_is_right(
    registry: CollectorRegistry, refused: RefusedFiles
) -> None:
    with capture_logs() as logs:
        for reason in ("no key", "no key", "no sink"):
            refused.refuse(Path("a.yaml"), ValueError(reason))

    assert [each["reason"] for each in logs] == ["no key", "no sink"]
    assert counted(registry) == 1
    refused.keep(lambda _: False)
    assert counted(registry) == 0
