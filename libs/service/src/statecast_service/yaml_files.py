"""Reads YAML files of which nothing may be ignored."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml


class _UniqueKeys(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Returns what the file holds; a key that is given twice is an error, where YAML would drop the first.

    Raises OSError, UnicodeDecodeError, yaml.YAMLError.
    """
    return yaml.load(path.read_text(encoding="utf-8"), _UniqueKeys)  # noqa: S506  it is a SafeLoader
