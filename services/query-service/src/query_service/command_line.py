"""What `query-service` can be told to do."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from query_service.settings import describe_settings


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Returns the chosen `command` and its arguments; ends the process with status 2 when they are wrong."""
    parser = argparse.ArgumentParser(
        prog="query-service",
        description="Materializes Kafka topics and answers gRPC lookups on them.",
        epilog=f"environment variables:\n{describe_settings()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    commands.add_parser("run", help="serve until SIGTERM")
    commands.add_parser("schema", help="print the JSON Schema of the stores file")
    inspect = commands.add_parser("inspect", help="show what a data directory holds; also beside a running instance")
    inspect.add_argument("directory", type=Path, help="the QUERY_SERVICE_DATA_DIRECTORY of an instance")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    return parser.parse_args(arguments)
