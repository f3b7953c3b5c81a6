"""The command `query-service`: reads the settings and the stores file, and runs an instance."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from query_service.instance import Instance
from query_service.settings import Settings
from query_service.storage import inspection
from query_service.storage.store_directory import locked
from query_service.storage.stores_file import StoreDefinition, read_stores, stores_schema
from statecast_service.collector import collect_seldom
from statecast_service.errors import ServiceError
from statecast_service.logs import configure_logs
from statecast_service.settings import describe_settings, load_settings

_SWITCH_INTERVAL_S = 0.001  # so that a call never waits long for the thread that applies records


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns the exit status that the README lists."""
    options = _parser().parse_args(arguments)
    try:
        match options.command:
            case "schema":
                sys.stdout.write(stores_schema())
                return 0
            case "inspect":
                report = inspection.inspect(options.directory)
                sys.stdout.write(inspection.as_json(report) if options.json else inspection.as_table(report))
                return 1 if report.unreadable else 0
        settings = load_settings(Settings)
        configure_logs(settings.log_level, settings.instance_name)
        stores = read_stores(settings.stores)
        with locked(settings.data_directory):
            return 0 if uvloop.run(_run(settings, stores)) else 1
    except ServiceError as error:
        sys.stderr.write(f"query-service: {error}\n")
        return error.exit_status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="query-service",
        description="Materializes Kafka topics and answers gRPC lookups on them.",
        epilog=f"environment variables:\n{describe_settings(Settings)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    commands.add_parser("run", help="serve until SIGTERM")
    commands.add_parser("schema", help="print the JSON Schema of the stores file")
    inspect = commands.add_parser("inspect", help="show what a data directory holds; also beside a running instance")
    inspect.add_argument("directory", type=Path, help="the QUERY_SERVICE_DATA_DIRECTORY of an instance")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


async def _run(settings: Settings, stores: Sequence[StoreDefinition]) -> bool:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    collect_seldom()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await Instance(settings, stores).run(stop)


if __name__ == "__main__":
    sys.exit(main())
