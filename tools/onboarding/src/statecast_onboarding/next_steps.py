"""The lines that `statecast import` prints: its changes to the connector, and the next steps with its files."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from statecast_onboarding.connector_file import CONNECTOR, TABLES, ConnectorFile, read_connector
from statecast_onboarding.domain_directory import PIPELINES, former_prefix
from statecast_onboarding.table import Table
from statecast_onboarding.table_names import sql_identifier

_NEXT = """\
look at the files in {out}, edit them, then:
  export STATECAST_DESCRIPTORS={out}/messages      # for every service and client
{prefixed}  stream-processor check {out}/pipelines
  statecast apply {out}/pipelines --kafka HOST:PORT --out {out}      # creates topics, writes what the next two read
  stream-processor run {out}/pipelines
  QUERY_SERVICE_STORES={out}/stores.yaml query-service run
  WS_EDGE_DOMAINS={out} ws-edge run      # serves a page of yours, once it is {out}/pipelines/page/page.js"""
_PUT = "  curl -X PUT -H 'Content-Type: application/json' -d @{out}/connector.json CONNECT/connectors/NAME/config"
_PUT_NESTED = (
    "  jq .config {out}/connector.json | "
    "curl -X PUT -H 'Content-Type: application/json' -d @- CONNECT/connectors/NAME/config"
)
_ROWS = """\
of a further table a connector that runs sends changes alone; this makes its rows changes, once the connector has it:
  UPDATE {table} SET {column} = {column};"""
_PREFIXED = """\
  export WS_EDGE_TOPIC_PREFIX={prefix}      # and the line group.prefix={prefix} in the Kafka properties of all
"""


def next_steps(out: Path, table: Table, before: ConnectorFile | None) -> Iterator[str]:
    """Yields the lines for a table with files written to `out`. `before` is the connector's file as it was."""
    connector = read_connector(out / CONNECTOR) if table.sql_name else None
    if connector and before:
        yield from _corrected(out / CONNECTOR, before.settings, connector.settings)
    prefix = former_prefix(out / PIPELINES)
    yield _NEXT.format(out=out, prefixed=_PREFIXED.format(prefix=prefix) if prefix else "")
    if connector:
        yield (_PUT if connector.beside is None else _PUT_NESTED).format(out=out)
    if connector and before:
        yield _ROWS.format(table=table.sql_name, column=sql_identifier(table.key[0]))


def _corrected(file: Path, before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    for name, value in after.items():
        if name != TABLES and before.get(name) != value:
            yield f"set {name} to {value} in {file}: without it changes are lost"
