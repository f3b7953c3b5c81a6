"""The command `query-service`: reads the settings and the stores file, and runs an instance."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import uvloop

from query_service.instance import Instance, wall_ms
from query_service.server.backup import back_up
from query_service.server.server import shard_tls
from query_service.settings import Settings
from query_service.storage import inspection
from query_service.storage.backup import restore
from query_service.storage.rocksdb_engine import RocksdbOpener
from query_service.storage.store_directory import StoreDirectory, locked
from query_service.storage.stores_file import StoreDefinition, read_stores, stores_schema
from statecast.descriptors import MessageTypes
from statecast.shard.v1.backup_pb2 import BackupManifest
from statecast_service.build import add_version
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
        if options.command == "backup":
            address = options.address or settings.shard_address
            taken = asyncio.run(back_up(address, shard_tls(settings), options.directory, wall_ms))
            sys.stdout.write(_summary("backed up", taken))
            return 0
        configure_logs(settings.log_level, settings.instance_name)
        stores = read_stores(settings.stores, settings.with_descriptors(MessageTypes.read))
        if options.command == "restore":
            with locked(settings.data_directory):
                restored = restore(options.directory, _directory(settings), stores, settings.resume_limit_s * 1000)
            sys.stdout.write(_summary("restored", restored))
            return 0
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
    add_version(parser, "query-service")
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    commands.add_parser("run", help="serve until SIGTERM")
    commands.add_parser("schema", help="print the JSON Schema of the stores file")
    inspect = commands.add_parser("inspect", help="show what a data directory holds; also beside a running instance")
    inspect.add_argument("directory", type=Path, help="the QUERY_SERVICE_DATA_DIRECTORY of an instance")
    inspect.add_argument("--json", action="store_true", help="print one JSON object")
    backup = commands.add_parser("backup", help="copy the partitions of a running instance into a directory")
    backup.add_argument("directory", type=Path, help="where to; a former backup of a partition in it is replaced")
    backup.add_argument("--address", help="the internal port of the instance; by default as the settings have it")
    back = commands.add_parser("restore", help="fill an empty data directory from a backup, before the instance runs")
    back.add_argument("directory", type=Path, help="what `backup` has filled")
    return parser


def _directory(settings: Settings) -> StoreDirectory:
    limit_ms = settings.resume_limit_s * 1000
    return StoreDirectory(
        settings.data_directory, RocksdbOpener(1 << 20, 8 << 20), lambda _: limit_ms, wall_ms, lambda: None
    )


def _summary(verb: str, manifests: Sequence[BackupManifest]) -> str:
    size = sum(file.size for manifest in manifests for file in manifest.files.values())
    lines = [f"{each.store}/{each.partition}, applied up to offset {each.next_offset - 1}" for each in manifests]
    return "\n".join([*lines, f"{verb}: {len(manifests)} partitions, {size:,} bytes"]) + "\n"


async def _run(settings: Settings, stores: Sequence[StoreDefinition]) -> bool:
    sys.setswitchinterval(_SWITCH_INTERVAL_S)
    collect_seldom()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return await Instance(settings, stores).run(stop)


if __name__ == "__main__":
    sys.exit(main())
