"""The reference tables of the README are those of the code."""

from pathlib import Path

from testkit.reference import stale_blocks
from ws_edge.errors import BY_EDGE, OTHERS

README = Path(__file__).parents[1] / "README.md"


def test_the_tables_of_settings_errors_and_metrics_are_not_stale() -> None:
    assert stale_blocks(README) == [], "run: python -m testkit.reference services/ws-edge/README.md"


def test_the_table_of_close_codes_is_not_stale() -> None:
    text = README.read_text()
    rows = [(str(code), close) for code, close in BY_EDGE.items()] + [("", close) for close in OTHERS]

    for code, close in rows:
        assert f"\n| {code} | `{close.reason}` | {close.meaning} |\n" in text


def test_the_prose_has_at_most_800_words() -> None:
    prose = [line for line in README.read_text().splitlines() if not line.startswith("|")]

    assert len(" ".join(prose).split()) <= 800
