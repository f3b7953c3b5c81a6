"""The JSON Schema of a pipeline's file."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from stream_processor.definition import pipeline_schema

PIPELINES = Path(__file__).parents[2] / "pipelines"
SHIPPED = sorted(PIPELINES.rglob("*.yaml"))
SCHEMA = json.loads(pipeline_schema.text())


def test_the_shipped_schema_is_current() -> None:
    """If not: `stream-processor schema > pipelines/pipeline.schema.json`."""
    assert (PIPELINES / "pipeline.schema.json").read_text() == pipeline_schema.text()


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: file.stem)
def test_a_shipped_pipeline_fits_the_schema_that_it_names(file: Path) -> None:
    named = file.read_text().splitlines()[0].removeprefix("# yaml-language-server: $schema=")

    jsonschema.validate(yaml.safe_load(file.read_text()), SCHEMA)

    assert (file.parent / named).resolve() == (PIPELINES / "pipeline.schema.json").resolve()


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("keep", "newest"),
        ("keep", {"members": {"key": "a", "sort": "b"}, "route": {}}),
        ("joins", [{"topic": "a", "message": "b", "on": "c", "as": "d"}]),
        ("forget_deleted", "soon"),
        ("groupby", "order_id"),
    ],
)
def test_a_wrong_value_does_not_fit(key: str, wrong: object) -> None:
    content = yaml.safe_load((PIPELINES / "orders" / "orders-by-key.yaml").read_text())

    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**content, key: wrong}, SCHEMA)
