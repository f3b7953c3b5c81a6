"""The domains that run, where the services follow them: a directory for each, and the topics and stores of them all."""

import shutil
from pathlib import Path

from local_stack import LocalStackError
from local_stack.domains import DOMAINS, domain_names
from local_stack.settings import Settings
from statecast_domains.derivation import Derivation, derive
from statecast_domains.derived_files import stores_text, topics_text
from statecast_domains.domain import read_domains
from statecast_domains.errors import DomainFileError

TOPICS, STORES = "topics.yaml", "stores.yaml"
TEXTS = {TOPICS: topics_text, STORES: stores_text}


def domains_directory(settings: Settings) -> Path:
    """Returns the processor's directory: one inside for each domain, copies of those that ship and others put there."""
    return settings.directory / "domains"


def messages_directory(settings: Settings) -> Path:
    """Returns where messages may be put beside those of the contract."""
    return settings.directory / "messages"


def system_file(settings: Settings, name: str) -> Path:
    """Returns one of the files that are made of all domains."""
    return settings.directory / "system" / name


def write_domain_files(settings: Settings) -> None:
    """Copies the chosen domains, and derives the files of all domains in the directory, a user's own included.

    Raises LocalStackError when a file of a domain is wrong, or domains contradict each other.
    """
    directory = domains_directory(settings)
    for name in domain_names():
        shutil.rmtree(directory / name, ignore_errors=True)
    for name in settings.domains:
        shutil.copytree(DOMAINS / name, directory / name)
    messages_directory(settings).mkdir(parents=True, exist_ok=True)
    derivation = _derive(directory)
    for name, text in TEXTS.items():
        file = system_file(settings, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(derivation), encoding="utf-8")


def _derive(directory: Path) -> Derivation:
    try:
        return derive(read_domains([directory]))
    except DomainFileError as error:
        raise LocalStackError(str(error)) from error
