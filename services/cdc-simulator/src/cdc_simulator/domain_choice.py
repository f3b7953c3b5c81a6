"""Finds the domains that there are, and the one that is chosen; imports no other."""

from difflib import get_close_matches
from importlib import import_module
from pkgutil import iter_modules

from cdc_simulator import domains
from cdc_simulator.domain import Domain


def domain_names() -> list[str]:
    """Returns the names of all domains, in alphabetical order."""
    return sorted(module.name for module in iter_modules(domains.__path__))


def choose_domain(name: str) -> Domain:
    """Returns the domain of that name. Raises ValueError, which names the nearest one, when there is none."""
    if name not in domain_names():
        nearest = get_close_matches(name, domain_names(), 1, cutoff=0.5)
        advice = f"did you mean {nearest[0]}?" if nearest else "choose one of them"
        raise ValueError(f"there is no domain {name!r} among {', '.join(domain_names())}; {advice}")
    chosen: Domain = import_module(f"{domains.__name__}.{name}.domain").DOMAIN
    return chosen
