"""Reads YAML files of which nothing may be ignored."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

_SURROGATE = re.compile(r"\\(u|U0000)[dD][89a-fA-F]")


class _UniqueKeys(yaml.SafeLoader):
    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"the key {key!r} is given twice", node.start_mark)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """Returns the file's content. A duplicate key is an error; PyYAML alone would drop the first value.

    Raises ValueError when the file cannot be read or is not YAML; the text says which.
    """
    try:
        text = path.read_text(encoding="utf-8")
        content = yaml.load(text, _UniqueKeys)  # noqa: S506  it is a SafeLoader
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise ValueError("is not YAML: it is nested too deeply") from error
    except (LookupError, AttributeError) as error:  # PyYAML does not check a value with an explicit tag
        raise ValueError(f"is not YAML: a value does not fit its tag: {error}") from error
    except (yaml.YAMLError, ValueError) as error:  # a ValueError for a day that no month has, or bytes that are no text
        raise ValueError(f"is not YAML: {error}") from error
    if _SURROGATE.search(text):  # YAML reads each escape by itself, and no text can hold half of a character
        raise ValueError("is not YAML: it escapes half of a character: write the character itself")
    return content
