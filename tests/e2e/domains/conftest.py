"""The stack that all stories of this directory share. It ends with them, since it takes most of the machine."""

from collections.abc import Iterator

import pytest
from drivers.shared_stack import shared_stack

from local_stack.domains import FIRST, domain_names
from local_stack.running_stack import RunningStack


@pytest.fixture(scope="package")
def domains_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningStack]:
    """The stack of all domains but the orders."""
    others = ",".join(name for name in domain_names() if name != FIRST)
    directory = tmp_path_factory.mktemp("domains-stack")
    with shared_stack(directory, domain=others, rate=10) as running:
        yield running
