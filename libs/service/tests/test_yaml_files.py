"""YAML files of which nothing is ignored."""

from pathlib import Path

import pytest

from statecast_service.yaml_files import read_yaml


def test_a_key_that_is_given_twice_is_refused_at_any_depth(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("a: 1\nb:\n  - {c: 2, d: 3}\n")

    assert read_yaml(file) == {"a": 1, "b": [{"c": 2, "d": 3}]}

    file.write_text("a: 1\nb:\n  - {c: 2, c: 3}\n")
    with pytest.raises(ValueError, match=r"(?s)the key 'c' is given twice.*line 3"):
        read_yaml(file)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"a: [", "is not YAML: while parsing"),
        (b"\xff", "is not YAML: 'utf-8' codec"),
        (b"a: 2024-99-99", "is not YAML: month must be in 1..12"),
        (b"a: 0x_", "is not YAML: invalid literal"),
        (b"a: !!int ''", "is not YAML: a value does not fit its tag: string index out of range"),
        (b"a: !!bool si", "is not YAML: a value does not fit its tag: 'si'"),
        (b"a: !!timestamp today", "is not YAML: a value does not fit its tag"),
        (b"[" * 5_000, "is not YAML: it is nested too deeply"),
        (b'"\\ud83d\\ude00"', "is not YAML: it escapes half of a character"),
    ],
)
def test_what_is_no_yaml_is_told_so(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(content)

    with pytest.raises(ValueError, match=problem):
        read_yaml(file)


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")
