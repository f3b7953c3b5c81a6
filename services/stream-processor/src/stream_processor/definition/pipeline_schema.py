"""The JSON Schema of a pipeline's file, by which editors complete and check it while it is written."""

import json
from typing import Any

from stream_processor.definition.pipeline_file import PipelineFile

DIALECT = "https://json-schema.org/draft/2020-12/schema"
TITLE = "A pipeline of the stream-processor"


def text() -> str:
    """The schema as pipelines/pipeline.schema.json holds it."""
    schema = {key: _plain(value) for key, value in PipelineFile.model_json_schema().items()}
    return json.dumps({"$schema": DIALECT, **schema, "title": TITLE}, indent=2) + "\n"


def _plain(node: Any) -> Any:
    """Without what no person would write: names made of keys, and null for what is left out."""
    if isinstance(node, list):
        return [_plain(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {key: _plain(value) for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    if {"type": "null"} not in kept.get("anyOf", []):
        return kept
    [option] = [each for each in kept.pop("anyOf") if each != {"type": "null"}]
    del kept["default"]
    return {**option, **kept}
