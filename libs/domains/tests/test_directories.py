"""Which files a directory stands for."""

from pathlib import Path

import pytest

from statecast_domains.directories import pipeline_files
from statecast_domains.errors import DomainFileError


def written(directory: Path, *names: str) -> list[Path]:
    files = [directory / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("name: p\n")
    return files


def test_a_directory_stands_for_its_pipelines_and_those_of_its_directories(tmp_path: Path) -> None:
    files = written(tmp_path, "a.yaml", "odds/b.yaml")
    written(
        tmp_path, "domain.yaml", "odds/domain.yaml", "odds/README.md", "..data/a.yaml", ".b.yaml", "odds/deep/c.yaml"
    )

    assert pipeline_files([tmp_path]) == files


def test_a_file_that_is_named_twice_counts_once(tmp_path: Path) -> None:
    [file] = written(tmp_path, "orders/a.yaml")

    assert pipeline_files([file, tmp_path, *tmp_path.glob("orders/*")]) == [file]


def test_a_directory_without_pipelines_is_named(tmp_path: Path) -> None:
    written(tmp_path, "domain.yaml")

    with pytest.raises(DomainFileError, match=f"{tmp_path}: is a directory without a pipeline's file"):
        pipeline_files([tmp_path])


def test_a_missing_file_is_left_to_who_reads_it(tmp_path: Path) -> None:
    assert pipeline_files([tmp_path / "none.yaml"]) == [tmp_path / "none.yaml"]
