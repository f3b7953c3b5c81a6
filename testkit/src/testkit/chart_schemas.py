"""Writes `values.schema.json` of Helm charts from their `values.yaml`: `python -m testkit.chart_schemas CHART...`.

The default of a value gives its type, and the comment before it the description. A line `# @schema {…}` adds further
rules, or refers to those in `definitions.yaml` of the library. Objects refuse unknown names, unless the default is
empty, and missing ones, since a null removes a value.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

SCHEMA = "values.schema.json"
LIBRARY = "charts/statecast-library/values.yaml"
DEFINITIONS = "charts/statecast-library/definitions.yaml"
RULE = re.compile(r"@schema (\{.*\})$")
TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
Schema = dict[str, Any]


def schema_of(chart: Path) -> Schema:
    """Returns the schema of a chart's values, of those that it imports, and of the charts that it contains.

    Raises KeyError for an import that the library does not export, json.JSONDecodeError for a bad `@schema`.
    """
    library = _composed(chart / LIBRARY)
    facts = yaml.safe_load((chart / "Chart.yaml").read_text())
    properties: Schema = {"enabled": {"type": "boolean", "description": "Whether the chart of all installs this one."}}
    for dependency in facts["dependencies"]:
        for imported in dependency.get("import-values", ()):
            exported = _child(_child(library, "exports"), imported)
            properties |= _object(exported, _lines(chart / LIBRARY))["properties"]
    own = _object(_composed(chart / "values.yaml"), _lines(chart / "values.yaml"))
    properties |= own["properties"]
    # Each has a schema of its own; Helm gives a name to the values of the library, too.
    properties |= {each["name"]: {"type": "object"} for each in facts["dependencies"]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": facts["name"],
        "type": "object",
        "additionalProperties": False,
        # `helm lint` does not see those that are imported.
        "required": own["required"],
        "properties": properties,
        "$defs": yaml.safe_load((chart / DEFINITIONS).read_text()),
    }


def _composed(file: Path) -> yaml.Node:
    node = yaml.compose(file.read_text())
    assert node is not None, file
    return node


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


def _child(node: yaml.Node, name: str) -> yaml.Node:
    children: dict[str, yaml.Node] = {key.value: value for key, value in node.value}
    return children[name]


def _object(node: yaml.Node, lines: list[str]) -> Schema:
    """Returns the schema of a mapping with the names that it has."""
    properties = {key.value: _value(key, value, lines) for key, value in node.value}
    return {"type": "object", "additionalProperties": False, "required": sorted(properties), "properties": properties}


def _value(key: yaml.ScalarNode, value: yaml.Node, lines: list[str]) -> Schema:
    description, rule = _comment(lines, key.start_mark.line)
    described: Schema = {"description": description} if description else {}
    if "$ref" in rule:
        return described | rule
    has_names = isinstance(value, yaml.MappingNode) and value.value
    schema: Schema = _object(value, lines) if has_names else {"type": TYPES[type(_default(value))]}
    return schema | described | rule


def _default(value: yaml.Node) -> Any:
    return yaml.SafeLoader("").construct_object(value, deep=True)


def _comment(lines: list[str], line: int) -> tuple[str, Schema]:
    """Returns the text and the rule of the comment above a line."""
    words: list[str] = []
    rule: Schema = {}
    while line and (text := lines[line - 1].strip()).startswith("#"):
        line -= 1
        if match := RULE.search(text):
            rule = json.loads(match[1])
        else:
            words.insert(0, text.lstrip("# "))
    return " ".join(words), rule


def main() -> None:
    """Writes the schema of each chart that the command line names."""
    for chart in map(Path, sys.argv[1:]):
        (chart / SCHEMA).write_text(written(chart))


def written(chart: Path) -> str:
    """Returns the text of the file."""
    return json.dumps(schema_of(chart), indent=2) + "\n"


if __name__ == "__main__":
    main()
