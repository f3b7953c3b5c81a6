"""The domains to choose from: one module each, with its rows, tables and life cycles, and the constant DOMAIN.

Nothing else names a domain, so another one is another module.
"""

from importlib import import_module
from pkgutil import iter_modules

from cdc_simulator.domain import Domain
from statecast_service.settings import nearest


def domain_names() -> list[str]:
    return sorted(module.name for module in iter_modules(__path__))


def choose_domain(name: str) -> Domain:
    """Returns the domain of that name. Raises ValueError, which names the nearest one, when there is none."""
    if name not in domain_names():
        match = nearest(name, domain_names())
        advice = f"did you mean {match}?" if match else "choose one of them"
        raise ValueError(f"there is no domain {name!r} among {', '.join(domain_names())}; {advice}")
    domain: Domain = import_module(f"{__name__}.{name}").DOMAIN
    return domain
