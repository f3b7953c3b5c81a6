"""The arguments of the command `statecast`."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

DEFAULT_ADDRESS = "127.0.0.1:50051"

_EPILOG = """\
A KEY is GROUP, or GROUP/SORT/MEMBER where a group has many members; --separator takes another sign than / when a part
contains it.

exit status:
  0  answered
  1  the key has no value
  2  an argument, the store or a file is wrong; standard error says which
  3  no instance answered in time, or the service is overloaded
  4  no answer is as fresh as --max-lag-ms asks
"""


def parse(arguments: Sequence[str] | None, environment: Mapping[str, str]) -> argparse.Namespace:
    """Returns the chosen command and its options. Ends the process with status 2 when they are wrong."""
    parser = argparse.ArgumentParser(
        prog="statecast",
        description="Asks the query service from the shell.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    shared = [_connection(environment)]
    _add_get(commands.add_parser("get", help="show the value of one key", parents=shared))
    _add_scan(commands.add_parser("scan", help="show the rows of a group, or of a whole store", parents=shared))
    _add_shards(commands.add_parser("shards", help="show who serves what, and how fresh it is", parents=shared))
    _add_watch(commands.add_parser("watch", help="show what keys hold, and every change", parents=shared))
    return parser.parse_args(arguments)


def _connection(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    shared = argparse.ArgumentParser(add_help=False)
    add = shared.add_argument
    address = environment.get("STATECAST_ADDRESS") or DEFAULT_ADDRESS
    add("--address", default=address, help=f"instances, as host:port,host:port [$STATECAST_ADDRESS, {DEFAULT_ADDRESS}]")
    add("--tls", action="store_true", help="encrypt, trusting the system's authorities unless --tls-ca is given")
    for name, what in (
        ("ca", "whose certificates to trust, as PEM [$STATECAST_TLS_CA]"),
        ("certificate", "the certificate to show, as PEM [$STATECAST_TLS_CERTIFICATE]"),
        ("key", "its private key, as PEM [$STATECAST_TLS_KEY]"),
    ):
        given = environment.get(f"STATECAST_TLS_{name.upper()}")
        add(f"--tls-{name}", type=Path, default=Path(given) if given else None, metavar="FILE", help=what)
    add("--timeout", type=_seconds, default=5.0, metavar="SECONDS", help="the longest that a call may take [5]")
    add("--json", action="store_true", help="write one JSON object a line")
    add("--separator", default="/", metavar="SIGN", help="what stands between the parts of a key [/]")
    return shared


def _add_get(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("key", metavar="KEY")
    _add_lag(parser)


def _add_scan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("store", metavar="STORE")
    add("group", metavar="GROUP", nargs="?", default="", help="leave it out for the whole store")
    add("--from", dest="sort_from", default="", metavar="SORT", help="the lowest sort value, inclusive")
    add("--to", dest="sort_to", default="", metavar="SORT", help="the sort value to stop before")
    add("--prefix", dest="sort_prefix", default="", metavar="TEXT", help="only sort values that begin with this")
    add("--reverse", action="store_true", help="begin with the highest key")
    add("--limit", type=_count, metavar="N", help="stop after so many rows")
    add("--local-only", action="store_true", help="only what the first instance of --address owns")
    _add_lag(parser)


def _add_shards(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE", nargs="?", default="", help="leave it out for all")


def _add_watch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("store", metavar="STORE")
    parser.add_argument("keys", metavar="KEY", nargs="+")
    parser.add_argument("--limit", type=_count, metavar="N", help="stop after so many changes")


def _add_lag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--max-lag-ms", type=_count, metavar="MS", help="the highest lag that is accepted")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of 1 or more")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of seconds above 0, and at most 3600")
    return seconds
