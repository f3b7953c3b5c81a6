"""The README's reference tables."""

from pathlib import Path

from testkit.reference import stale_blocks


def test_the_reference_tables_are_what_the_code_says() -> None:
    assert stale_blocks(Path(__file__).parents[1] / "README.md") == []
