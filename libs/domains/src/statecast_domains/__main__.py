"""Derives files from domains: `python -m statecast_domains DIR... --topics FILE`, as `make reference` does."""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from statecast_domains.derivation import derive
from statecast_domains.derived_files import stores_text, topics_text
from statecast_domains.domain import read_domains
from statecast_domains.domain_file import schema_text
from statecast_domains.errors import DomainFileError

TEXTS = {"topics": topics_text, "stores": stores_text}


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 2 when a file of the domains is wrong."""
    parser = ArgumentParser(prog="python -m statecast_domains")
    parser.add_argument("directories", nargs="+", type=Path, metavar="DIR")
    for name in (*TEXTS, "domain-schema"):
        parser.add_argument(f"--{name}", dest=name, type=Path, metavar="FILE")
    options = vars(parser.parse_args(arguments))
    try:
        derivation = derive(read_domains(options["directories"]))
    except DomainFileError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_status
    written = {name: text(derivation) for name, text in TEXTS.items()} | {"domain-schema": schema_text()}
    for name, text in written.items():
        if options[name] is not None:
            options[name].write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
