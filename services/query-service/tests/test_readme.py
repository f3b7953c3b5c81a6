"""The README agrees with the code."""

from pathlib import Path

from query_service.settings import Settings
from testkit.reference import stale_blocks

README = Path(__file__).parents[1] / "README.md"


def test_the_reference_tables_are_what_the_code_says() -> None:
    assert stale_blocks(README) == []


def test_every_setting_is_in_the_table_with_its_meaning() -> None:
    rows = [line for line in README.read_text().splitlines() if line.startswith("| `")]

    for name, field in Settings.model_fields.items():
        shown = Settings.variable(name).removeprefix(Settings.prefix())
        assert any(row.startswith(f"| `{shown}` |") and row.endswith(f"| {field.description} |") for row in rows)
