"""The arguments of the command `statecast`."""

import argparse
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from statecast_client.argument_types import seconds, whole_number

DEFAULT_ADDRESS = "127.0.0.1:50051"
_COUNT, _SECONDS = whole_number(2**31 - 1), seconds(3600)

_EPILOG = """\
`statecast import` and `statecast doctor` come with the distribution statecast-onboarding; each has its own --help.

A KEY is GROUP, or GROUP/SORT/MEMBER where a group has many members; --separator takes another sign than / when a part
contains it.

exit status:
  0  answered
  1  the key has no value
  2  an argument, the store, a file or the credential is wrong; standard error says which
  3  no instance, or gateway, answered in time, or the service is overloaded
  4  no answer is as fresh as --max-lag-ms asks
  130  interrupted
"""


def parse(arguments: Sequence[str] | None, environment: Mapping[str, str]) -> argparse.Namespace:
    """Returns the chosen command and its options. Ends the process with status 2 when they are wrong."""
    parser = argparse.ArgumentParser(
        prog="statecast",
        description="Asks the query service from the shell.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    build = f"statecast {version('statecast-client')} (contract {version('statecast-contract')})"
    parser.add_argument("--version", action="version", version=build, help="show version and contract")
    commands = parser.add_subparsers(required=True, metavar="command", dest="command")
    connection = _connection(environment)
    store = argparse.ArgumentParser(add_help=False)
    store.add_argument("store", metavar="STORE")
    lag = argparse.ArgumentParser(add_help=False)
    lag.add_argument("--max-lag-ms", type=_COUNT, metavar="MS", help="the highest lag that is accepted")
    reading = [connection, store, lag]
    get = commands.add_parser("get", help="show the value of one key", parents=reading)
    get.add_argument("key", metavar="KEY")
    _add_scan(commands.add_parser("scan", help="show the rows of one group, of many, or of all", parents=reading))
    shards = commands.add_parser("shards", help="show who serves what, and how fresh it is", parents=[connection])
    shards.add_argument("store", metavar="STORE", nargs="?", default="", help="leave it out for all")
    watch = commands.add_parser("watch", help="show what keys hold, and every change", parents=[connection, store])
    watch.add_argument("keys", metavar="KEY", nargs="+", help="with --push a GROUP, of which all rows are shown")
    watch.add_argument("--limit", type=_COUNT, metavar="N", help="stop after so many changes")
    _add_push(watch.add_argument_group("over the gateway's WebSocket"), environment)
    token = commands.add_parser("token", help="show the offset that a token of a watch or a page carries")
    token.add_argument("token", metavar="TOKEN")
    token.add_argument("--json", action="store_true", help="write a JSON object")
    options = parser.parse_args(arguments)
    if options.command == "watch":
        _check_watch(watch, options)
    return options


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
        file = environment.get(f"STATECAST_TLS_{name.upper()}")
        add(f"--tls-{name}", type=Path, default=Path(file) if file else None, metavar="FILE", help=what)
    proxy = environment.get("STATECAST_PROXY") or None
    what = (
        "an HTTP proxy to connect through; else $HTTPS_PROXY and the like, but none to this machine [$STATECAST_PROXY]"
    )
    add("--proxy", default=proxy, metavar="URL", help=what)
    add("--timeout", type=_SECONDS, default=5.0, metavar="SECONDS", help="the longest that a call may take [5]")
    add("--json", action="store_true", help="write one JSON object a line")
    descriptors = environment.get("STATECAST_DESCRIPTORS")
    what = "a directory of .proto files and descriptor sets, beside the contract [$STATECAST_DESCRIPTORS]"
    add("--descriptors", type=Path, default=Path(descriptors) if descriptors else None, metavar="DIR", help=what)
    add("--separator", default="/", metavar="SIGN", help="what stands between the parts of a key [/]")
    return shared


def _add_scan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("group", metavar="GROUP", nargs="?", default="", help="leave it out for the whole store")
    add("--group-from", default="", metavar="GROUP", help="the lowest group, inclusive")
    add("--group-to", default="", metavar="GROUP", help="the group to stop before")
    add("--from", dest="sort_from", default="", metavar="SORT", help="the lowest sort value of each group, inclusive")
    add("--to", dest="sort_to", default="", metavar="SORT", help="the sort value to stop before in each group")
    add("--prefix", dest="sort_prefix", default="", metavar="TEXT", help="only sort values that begin with this")
    add("--reverse", action="store_true", help="begin with the highest key")
    add("--limit", type=_COUNT, metavar="N", help="stop after so many rows")
    add("--local-only", action="store_true", help="only what the first instance of --address owns")


def _add_push(group: argparse._ArgumentGroup, environment: Mapping[str, str]) -> None:
    add = group.add_argument
    add("--push", action="store_true", help="watch there, not at the instances of --address")
    for name, metavar, what in (
        ("gateway", "URL", "where it is, as ws://host:port or wss://host"),
        ("api-key", "KEY", "what to sign in with: a key,"),
        ("token", "JWT", "or a token,"),
        ("user", "NAME:PASSWORD", "or a name and a password"),
    ):
        variable = f"STATECAST_{name.upper().replace('-', '_')}"
        add(f"--{name}", default=environment.get(variable), metavar=metavar, help=f"{what} [${variable}]")
    add("--from", dest="sort_from", default="", metavar="SORT", help="from this sort value on")
    add("--to", dest="sort_to", default="", metavar="SORT", help="the sort value to stop before")
    add("--reverse", action="store_true", help="the rows with the highest sort values")
    add("--rows", type=_COUNT, default=0, metavar="N", help="so many rows of a group at the most")
    add("--interval-ms", type=_COUNT, metavar="MS", help="the shortest time between two changes of a group")


def _check_watch(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.push and not options.gateway:
        parser.error("--push needs --gateway, or $STATECAST_GATEWAY")
