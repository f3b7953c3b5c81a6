"""The command `kong-envoy render FILE`: writes the Envoy configuration for a gateway's file."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from kong_envoy.errors import KongEnvoyError
from kong_envoy.gateway import load
from kong_envoy.rendering import render, to_yaml
from statecast_service.build import add_version


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command; ends the process with status 1 and one line when the file cannot be rendered."""
    options = _parser().parse_args(arguments)
    try:
        config = render(
            load(options.file),
            listen_http=options.listen_http,
            listen_https=options.listen_https,
            resolve=_addresses(options.resolve),
            environment=os.environ,
            admin=options.admin,
        )
        if options.output is None:
            sys.stdout.write(to_yaml(config))
        else:
            options.output.touch()
            options.output.chmod(0o600)  # for the owner alone: it holds credentials and a private key
            options.output.write_text(to_yaml(config), encoding="utf-8")
    except KongEnvoyError as error:
        sys.exit(f"kong-envoy: {error}")
    except OSError as error:
        sys.exit(f"kong-envoy: {options.output or 'standard output'} cannot be written: {error.strerror}")


def _addresses(arguments: Sequence[str]) -> dict[str, list[str]]:
    addresses: dict[str, list[str]] = {}
    for argument in arguments:
        target, _, address = argument.partition("=")
        addresses.setdefault(target, []).append(address)
    return addresses


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kong-envoy", description=__doc__)
    add_version(parser, "statecast-infra")
    command = parser.add_subparsers(required=True).add_parser("render", help="write the Envoy configuration")
    command.add_argument("file", type=Path, help="the file in Kong's declarative format")
    command.add_argument("--listen-http", required=True, metavar="127.0.0.1:PORT")
    command.add_argument("--listen-https", metavar="127.0.0.1:PORT", help="needs a certificate in the file")
    command.add_argument("--admin", metavar="127.0.0.1:PORT", help="Envoy's own interface: /ready, /stats/prometheus")
    command.add_argument(
        "--resolve", action="append", default=[], metavar="TARGET=ADDRESS", help="an address of a target; else DNS"
    )
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="instead of standard output")
    return parser


if __name__ == "__main__":
    main()
