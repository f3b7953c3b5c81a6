"""The forms of keys."""

from drivers.model_keys import member_key, number_sort, time_sort
from google.protobuf.timestamp_pb2 import Timestamp


def test_times_are_27_characters_of_utc() -> None:
    assert time_sort(Timestamp(seconds=1_724_848_496, nanos=1_999)) == "2024-08-28T12:34:56.000001Z"


def test_numbers_are_19_digits() -> None:
    assert (number_sort(0), number_sort(2**63 - 1)) == ("0" * 19, "9223372036854775807")


def test_parts_are_parted_by_nul() -> None:
    assert member_key("g", "s", "m") == "g\0s\0m"
