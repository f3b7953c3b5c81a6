"""The reference tables of the documents."""

from pathlib import Path

import pytest

from testkit.reference import stale_blocks

SERVICE = Path(__file__).parents[1]


@pytest.mark.parametrize("document", ["README.md", "pipelines/README.md"])
def test_the_reference_tables_are_current(document: str) -> None:
    """If this fails, run `python -m testkit.reference README.md pipelines/README.md`."""
    assert stale_blocks(SERVICE / document) == []
