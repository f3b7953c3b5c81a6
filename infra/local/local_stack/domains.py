"""Which domains run: chosen by name, each with a simulator of its own, its pipelines, topics and stores."""

from pathlib import Path

from statecast_domains.directories import pipeline_files
from statecast_service.settings import suggest

DOMAINS = Path(__file__).resolve().parents[3] / "domains"
ALL = "all"
FIRST = "orders"
"""The domain that runs when none is chosen; its processes are named without it."""


def domain_names() -> list[str]:
    """Returns every domain of the checkout, the first one first."""
    names = {directory.name for directory in DOMAINS.iterdir() if any(directory.glob("*.yaml"))}
    return sorted(names, key=lambda name: (name != FIRST, name))


def chosen_domains(text: str) -> tuple[str, ...]:
    """Parses domain names separated by commas, or `all`. Raises ValueError that suggests a name for a wrong one."""
    names = domain_names()
    if text.strip() == ALL:
        return tuple(names)
    asked = [name.strip() for name in text.split(",")]
    for name in asked:
        if name not in names:
            raise ValueError(f"there is no domain {name!r}: {suggest(name, [*names, ALL])}")
    return tuple(dict.fromkeys(asked))


def named_for(program: str, domain: str) -> str:
    """Names a domain's own instance of a program: `cdc-simulator`, `cdc-simulator-odds`."""
    return program if domain == FIRST else f"{program}-{domain}"


def pipelines_of(domain: str) -> list[Path]:
    """Returns the files of a domain's pipelines."""
    return pipeline_files([DOMAINS / domain])
