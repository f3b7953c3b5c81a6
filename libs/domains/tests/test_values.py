"""Values as people write them: durations, sizes, and where a topic is begun."""

from datetime import UTC, date, datetime, timedelta, timezone

import pytest

from statecast_domains.values import human, parse_duration, parse_size, parse_starting_offsets, spark_text


@pytest.mark.parametrize(
    ("text", "seconds"), [("500ms", 0.5), ("60s", 60), ("2m", 120), ("1h", 3600), (" 5 s ", 5), ("7d", 604800)]
)
def test_each_unit_is_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "60", "s", "-1s", "1.5s", "1w", 60, None])
def test_any_other_form_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="is not a duration like"):
        parse_duration(text)


def test_a_duration_that_no_clock_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="is too long, 36500d at most"):
        parse_duration("99999999999999d")


def test_spark_is_told_milliseconds() -> None:
    assert spark_text(timedelta(seconds=1.5)) == "1500 milliseconds"


@pytest.mark.parametrize("text", ["0s", "500ms", "1500ms", "61s", "2m", "1h", "36h", "7d"])
def test_people_are_told_what_they_wrote(text: str) -> None:
    assert human(parse_duration(text)) == text


@pytest.mark.parametrize(("text", "size"), [("100B", 100), ("64KiB", 65_536), ("1 MiB", 1_048_576)])
def test_sizes_are_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "64", "64KB", "1.5MiB", 64, None])
def test_no_other_form_is_a_size(text: object) -> None:
    with pytest.raises(ValueError, match="is not a size like"):
        parse_size(text)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("2026-10-25T06:00:00Z", "2026-10-25T06:00:00+00:00"),
        ("2026-10-25 06:00:00+02:00", "2026-10-25T04:00:00+00:00"),
        (datetime(2026, 10, 25, 6, tzinfo=timezone(timedelta(hours=2))), "2026-10-25T04:00:00+00:00"),
    ],
)
def test_a_topic_is_begun_at_an_end_or_a_moment(value: object, read: str) -> None:
    assert parse_starting_offsets(value) == read


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0001-01-01T00:00:00+14:00", "lies before the year 1"),
        ("newest", "must be earliest, latest or a time"),
        (None, "must be earliest, latest or a time"),
        ("2026-10-25T06:00:00", "must say the time and its zone"),
        (date(2026, 10, 25), "must say the time and its zone"),
        (datetime.now(UTC) + timedelta(hours=1), "lies in the future"),
    ],
)
def test_it_is_begun_nowhere_else(value: object, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_starting_offsets(value)
