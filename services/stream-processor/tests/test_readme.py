"""The reference tables of the documents."""

from pathlib import Path

import pytest

from testkit.reference import stale_blocks
from testkit.repository_files import DOMAINS

SERVICE = Path(__file__).parents[1]


@pytest.mark.parametrize("document", [SERVICE / "README.md", DOMAINS / "README.md"], ids=str)
def test_the_reference_tables_are_current(document: Path) -> None:
    """If this fails, run `make reference`."""
    assert stale_blocks(document) == []
