"""Durations as people write them."""

from datetime import timedelta

import pytest

from statecast_domains.sections import human, parse_duration, spark_text


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("60s", 60), ("2m", 120), ("1h", 3600), (" 5 s ", 5), ("7d", 604800)]
)
def test_each_unit_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "60", "s", "-1s", "1.5s", "1w", 60, None])
def test_any_other_form_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration like"):
        parse_duration(text)


def test_spark_is_told_milliseconds() -> None:
    assert spark_text(timedelta(seconds=1.5)) == "1500 milliseconds"


@pytest.mark.parametrize("text", ["0s", "500ms", "1500ms", "61s", "2m", "1h", "36h", "7d"])
def test_people_are_told_what_they_wrote(text: str) -> None:
    assert human(parse_duration(text)) == text
