"""Pipelines' files with topics of their own, so that many pipelines can share a broker."""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


def write_prefixed(file: Path, content: Mapping[str, Any], prefix: str) -> Path:
    """Writes a pipeline's content with each topic that it names after the prefix, and returns the file."""
    written = copy.deepcopy(dict(content))
    sections = [written["source"], written["sink"], *written.get("joins", ())]
    if written.get("table_join"):
        sections.append(written["table_join"])
    for section in sections:
        section["topic"] = prefix + section["topic"]
    file.write_text(yaml.safe_dump(written))
    return file
