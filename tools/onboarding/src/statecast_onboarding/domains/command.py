"""The commands `statecast plan` and `statecast apply`: compare domains with a running system, and change it."""

import asyncio
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic_settings import SettingsConfigDict

from statecast_client.client import StatecastClient
from statecast_client.errors import StatecastError
from statecast_domains.derivation import Derivation, derive
from statecast_domains.domain import Domain, read_domains
from statecast_onboarding.domains.difference import Difference, of_served, of_topics
from statecast_onboarding.domains.written_files import CONFIGMAPS, configmaps, of_files, texts, write
from statecast_onboarding.errors import UnreachableError
from statecast_service.errors import ServiceError
from statecast_service.kafka import KafkaSettings
from statecast_service.kafka_cluster import Cluster
from statecast_service.settings import load_settings
from statecast_service.topics import Topic

_PLAN_STATUSES = """\
each line begins with + (comes), ~ (changes) or - (goes).

exit status:
  0  nothing differs
  1  something differs
  2  an argument or a file is wrong, or a server does not answer
"""
_APPLY_STATUSES = """\
Topics that are missing are created, and the files are written at once; services that watch them take what is new.
Nothing in Kafka is ever deleted or repartitioned.

exit status:
  0  done
  1  something would go or be repartitioned: nothing is done
  2  an argument or a file is wrong, or a server does not answer
"""


class Settings(KafkaSettings):
    """How the commands reach Kafka, from variables that begin with STATECAST_DOMAINS_."""

    model_config = SettingsConfigDict(env_prefix="STATECAST_DOMAINS_")


def plan(arguments: Sequence[str]) -> int:
    """Runs `statecast plan`; returns its exit status."""
    options = _parser("plan", "Prints what differs between domains and what runs; changes nothing.").parse_args(
        arguments
    )
    return _run(_plan, options)


def apply(arguments: Sequence[str]) -> int:
    """Runs `statecast apply`; returns its exit status."""
    parser = _parser("apply", "Makes topics, and files for the services, what domains say.")
    add = parser.add_argument
    add("--configmap", action="store_true", help=f"also write {CONFIGMAPS}, for kubectl apply")
    add("--replication-factor", type=int, metavar="N", help="of topics that are created [the broker's own]")
    add("--allow-removals", action="store_true", help="let entries go from the files; topics stay in Kafka")
    options = parser.parse_args(arguments)
    if options.out is None:
        parser.error("--out is missing: the directory that the services' files are written to")
    return _run(_apply, options)


def _run(command: Callable[[Namespace], int], options: Namespace) -> int:
    try:
        return command(options)
    except ServiceError as error:
        sys.stderr.write(f"statecast: {error}\n")
        return 2


def _plan(options: Namespace) -> int:
    system = _System(options)
    lines = list(system.differences())
    sys.stdout.writelines(f"{line}\n" for line in lines)
    if not lines:
        sys.stdout.write(f"{system.summary}\n")
    return 1 if lines else 0


def _apply(options: Namespace) -> int:
    system = _System(options)
    lines = list(system.differences())
    sys.stdout.writelines(f"{line}\n" for line in lines)
    refused = [line for line in lines if line.never or (line.kept_back and not options.allow_removals)]
    for line in refused:
        todo = "" if line.never else ": correct the files, or say --allow-removals"
        sys.stderr.write(f"statecast: nothing is done, because of: {line}{todo}\n")
    if refused:
        return 1
    for topic in system.create_topics(options.replication_factor):
        sys.stdout.write(f"created {topic}\n")
    for path in write(options.out, system.files(options.configmap)):
        sys.stdout.write(f"wrote {path}\n")
    return 0


class _System:
    """The domains, and the targets that the options compare them with. Raises ServiceError for wrong files."""

    def __init__(self, options: Namespace) -> None:
        self._options = options
        self._domains: list[Domain] = read_domains(options.directories)
        self._derivation: Derivation = derive(self._domains)
        self._derived = texts(self._derivation)
        self._cluster = self._connect()
        self._topics: dict[str, Topic] = {}

    @property
    def summary(self) -> str:
        """The message when nothing differs."""
        counts = f"{len(self._derivation.topics)} topics, {len(self._derivation.stores)} stores"
        if self._cluster is None and not self._options.query and self._options.out is None:
            return f"the files are sound: {counts}; name --kafka, --query or --out to compare them"
        return f"nothing differs: {counts}"

    def _connect(self) -> Cluster | None:
        options = self._options
        if not (options.kafka or options.kafka_properties):
            return None
        overrides = {"kafka_bootstrap": options.kafka, "kafka_properties": options.kafka_properties}
        return Cluster(load_settings(Settings, **overrides), options.timeout, "--kafka")

    def differences(self) -> Iterator[Difference]:
        """Yields differences of Kafka's topics, then of the stores that are served, then of the files."""
        if self._cluster is not None:
            self._cluster.wait(_say)
            self._topics = self._cluster.topics([topic.name for topic in self._derivation.topics])
            yield from of_topics(self._derivation.topics, self._topics)
        if self._options.query:
            yield from of_served(self._derivation.stores, asyncio.run(_served(self._options)))
        if self._options.out is not None:
            yield from of_files(self._options.out, self._derived)

    def create_topics(self, replication_factor: int | None) -> list[str]:
        """Creates those that are missing, waits for them, and returns their names."""
        if self._cluster is None:
            return []
        missing = [topic for topic in self._derivation.topics if topic.name not in self._topics]
        self._cluster.create(missing, replication_factor)
        names = [topic.name for topic in missing]
        self._cluster.wait_for(names)
        return names

    def files(self, with_configmaps: bool) -> dict[str, str]:
        """Returns the texts by file name."""
        more = {CONFIGMAPS: configmaps(self._domains, self._derived)} if with_configmaps else {}
        return self._derived | more


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")


async def _served(options: Namespace) -> dict[str, str]:
    """Returns the topic of each store that the query service serves. Raises UnreachableError."""
    addresses = [address.strip() for address in options.query.split(",") if address.strip()]
    try:
        async with StatecastClient(addresses, timeout_s=options.timeout) as client:
            return {store.store: store.topic for store in (await client.shards()).stores}
    except StatecastError as error:
        raise UnreachableError(f"the query service at {options.query} does not say what it serves: {error}") from error


def _parser(command: str, text: str) -> ArgumentParser:
    parser = ArgumentParser(
        prog=f"statecast {command}",
        description=text,
        epilog=_PLAN_STATUSES if command == "plan" else _APPLY_STATUSES,
        formatter_class=RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("directories", nargs="+", type=Path, metavar="DIR", help="a domain, or a directory of domains")
    add("--kafka", metavar="HOST:PORT", help="brokers, with commas")
    add("--kafka-properties", type=Path, metavar="FILE", help="properties of the client, such as security.protocol")
    add("--query", metavar="HOST:PORT", help="instances of the query service, with commas: what they serve")
    add("--out", type=Path, metavar="DIR", help="where topics.yaml and stores.yaml are")
    add("--timeout", type=float, default=30.0, metavar="S", help="how long to wait for a server [30]")
    return parser
