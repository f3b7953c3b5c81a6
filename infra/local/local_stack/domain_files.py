"""What the services read about the domains that run: topics and stores of these alone, and what the edges keep."""

from pathlib import Path

from local_stack import LocalStackError
from local_stack.domains import DOMAINS
from local_stack.settings import Settings
from statecast_domains.derivation import Derivation, derive
from statecast_domains.derived_files import edge_stores_text, query_stores_text, topics_text
from statecast_domains.domain import read_domains
from statecast_domains.errors import DomainFileError

TOPICS, QUERY_STORES, EDGE_STORES = "topics.yaml", "query-stores.yaml", "edge-stores.yaml"
TEXTS = {TOPICS: topics_text, QUERY_STORES: query_stores_text, EDGE_STORES: edge_stores_text}


def domain_file(settings: Settings, name: str) -> Path:
    """Where one of the files stands."""
    return settings.directory / "domains" / name


def write_domain_files(settings: Settings) -> None:
    """Writes them. Raises LocalStackError when a file of a domain is wrong, or domains do not go together."""
    derivation = _derive(settings)
    for name, text in TEXTS.items():
        file = domain_file(settings, name)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(derivation), encoding="utf-8")


def _derive(settings: Settings) -> Derivation:
    try:
        return derive(read_domains([DOMAINS / name for name in settings.domains]))
    except DomainFileError as error:
        raise LocalStackError(str(error)) from error
