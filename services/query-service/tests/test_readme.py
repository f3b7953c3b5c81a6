"""The README says what the code says."""

from pathlib import Path

from query_service.settings import Settings, variable

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_every_setting_is_in_the_table_with_its_meaning() -> None:
    rows = [line for line in README.splitlines() if line.startswith("| `QUERY_SERVICE_")]

    assert len(rows) == len(Settings.model_fields)
    for row, (name, field) in zip(rows, Settings.model_fields.items(), strict=True):
        assert row.startswith(f"| `{variable(name)}` |")
        assert row.endswith(f"| {field.description} |")
