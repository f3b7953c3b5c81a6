"""Writes the reference tables of a README from the code, and finds those that are stale.

A block of a README names its source, as MODULE or MODULE:CLASS:

    <!-- generated: settings ws_edge.settings:Settings -->
    <!-- end -->

The kinds are `settings` (a class of settings), `errors` (a module of exceptions, and the mapping of some to a gRPC
status), `metrics` (a class or an object of metrics) and `schema` (a function that returns a JSON Schema).
`python -m testkit.reference README...` rewrites the blocks; a test of each service calls `stale_blocks`.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from prometheus_client import CollectorRegistry

from statecast_service.settings import ServiceSettings, shown_default

BLOCK = re.compile(r"(<!-- generated: (?P<kind>\w+) (?P<sources>[\w.: ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
SUFFIXES = {"counter": "_total", "info": "_info"}
"""The suffixes of a metric's name in its samples."""

CLASS_FACTS = {"exit_status": "exit status", "code": "code", "http_status": "HTTP status"}
"""Class attributes of errors that have a column of their own, where a module's errors have them."""


def settings_table(settings: type[ServiceSettings]) -> str:
    rows = [
        (
            _code(settings.variable(name).removeprefix(settings.prefix())),
            _code(shown_default(field)),
            field.description or "",
        )
        for name, field in settings.model_fields.items()
    ]
    return _table((f"`{settings.prefix()}…`", "default", "meaning"), rows)


def errors_table(module: ModuleType, statuses: Mapping[type, Enum] | None = None) -> str:
    """Returns a row for each exception that the module defines, in its order. A status is that of its base, too."""
    errors = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Exception) and value.__module__ == module.__name__
    ]
    columns = {
        title: [str(getattr(error, name, "")) for error in errors]
        for name, title in CLASS_FACTS.items()
        if any(hasattr(error, name) for error in errors)
    }
    if statuses:
        kinds = [next((kind for kind in error.__mro__ if kind in statuses), None) for error in errors]
        columns["gRPC status"] = [statuses[kind].name if kind else "" for kind in kinds]
    summaries = [inspect.getdoc(error) or "" for error in errors]
    rows = [
        (_code(error.__name__), *map(_code, facts), summary.partition("\n\n")[0].replace("\n", " "))
        for error, summary, *facts in zip(errors, summaries, *columns.values(), strict=True)
    ]
    return _table(("error", *columns, "meaning"), rows)


def metrics_table(metrics: Any) -> str:
    """Returns a row for each metric of a registry, of an object that has one, or of such a class."""
    if isinstance(metrics, type):
        metrics = metrics(CollectorRegistry()) if inspect.signature(metrics).parameters else metrics()
    registry = metrics if isinstance(metrics, CollectorRegistry) else metrics.registry
    rows = [
        (_code(family.name + SUFFIXES.get(family.type, "")), family.type, family.documentation)
        for family in registry.collect()
    ]
    return _table(("metric", "type", "meaning"), rows)


def schema_table(schema_text: Callable[[], str]) -> str:
    """Returns a row for each key that a JSON Schema allows; those of inner objects have their path."""
    schema = json.loads(schema_text())
    return _table(("key", "default", "meaning"), _schema_rows(schema, schema, ""))


def _schema_rows(schema: Mapping[str, Any], node: Mapping[str, Any], path: str) -> Iterator[Sequence[str]]:
    for name, written in node.get("properties", {}).items():
        options = [written, *written.get("anyOf", ()), written.get("items", {})]
        inner = [schema["$defs"][each["$ref"].rpartition("/")[2]] for each in options if "$ref" in each]
        default = "required" if name in node.get("required", ()) else written.get("default") or ""
        texts = [each["description"] for each in (written, *inner) if "description" in each]
        shown = default if isinstance(default, str) else json.dumps(default)
        yield _code(f"{path}{name}"), _code(shown), texts[0] if texts else ""
        for each in inner:
            yield from _schema_rows(schema, each, f"{path}{name}{'[]' if 'items' in written else ''}.")


TABLES: Mapping[str, Callable[..., str]] = {
    "settings": settings_table,
    "errors": errors_table,
    "metrics": metrics_table,
    "schema": schema_table,
}


def rewritten(text: str) -> str:
    """Returns the text with all blocks made anew. Raises ImportError, AttributeError or KeyError for bad ones."""
    return BLOCK.sub(
        lambda block: f"{block[1]}\n{TABLES[block['kind']](*map(_source, block['sources'].split()))}\n\n{block[4]}",
        text,
    )


def stale_blocks(readme: Path) -> list[str]:
    """Returns the first lines of those blocks that differ from the code."""
    text = readme.read_text(encoding="utf-8")
    pairs = zip(BLOCK.finditer(text), BLOCK.finditer(rewritten(text)), strict=True)
    return [old[1].strip() for old, new in pairs if old[0] != new[0]]


def main(readmes: Sequence[str]) -> None:
    for readme in map(Path, readmes):
        readme.write_text(rewritten(readme.read_text(encoding="utf-8")), encoding="utf-8")


def _source(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [[cell.replace("|", "\\|") for cell in line] for line in (head, ["---"] * len(head), *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    main(sys.argv[1:])
