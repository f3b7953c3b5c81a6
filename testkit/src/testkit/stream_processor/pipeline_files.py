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


def latest_orders(prefix: str, checkpoint: str = "5s", **more: object) -> dict[str, object]:
    """Returns the content of a file that keeps the newest row of each order, with its topics after a prefix."""
    return {
        "name": "latest",
        "source": {"topic": f"{prefix}orders", "message": "statecast.orders.v1.OrderChange"},
        "group_by": "order_id",
        "keep": "latest",
        "sink": {"topic": f"{prefix}orders-by-key"},
        "trigger": {"mode": "realtime", "checkpoint": checkpoint},
        **more,
    }
