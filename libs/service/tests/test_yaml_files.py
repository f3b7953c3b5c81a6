"""YAML files of which nothing is ignored."""

from pathlib import Path

import pytest
import yaml

from statecast_service.yaml_files import read_yaml


def test_a_key_that_is_given_twice_is_refused_at_any_depth(tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text("a: 1\nb:\n  - {c: 2, d: 3}\n")

    assert read_yaml(file) == {"a": 1, "b": [{"c": 2, "d": 3}]}

    file.write_text("a: 1\nb:\n  - {c: 2, c: 3}\n")
    with pytest.raises(yaml.YAMLError, match=r"(?s)the key 'c' is given twice.*line 3"):
        read_yaml(file)
