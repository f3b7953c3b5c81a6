"""Keys in another partition than theirs are noticed."""

from structlog.testing import capture_logs

from query_service.cluster.partitioning import HASHES, partition_of
from query_service.metrics import Metrics
from query_service.storage.place_check import PlaceCheck

HASH = HASHES["murmur2"]
OWN = [f"c-{number}".encode() for number in range(5000) if partition_of(f"c-{number}", 9) == 3]
FOREIGN = [f"c-{number}".encode() for number in range(5000) if partition_of(f"c-{number}", 9) != 3]


def misplaced(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("query_service_misplaced_keys_total", {"store": "bookings"})


def test_keys_in_their_own_partition_are_fine(metrics: Metrics) -> None:
    PlaceCheck("bookings", "bookings", 3, 9, HASH, metrics).check(OWN)

    assert misplaced(metrics) == 0


def test_a_member_stands_where_its_group_belongs(metrics: Metrics) -> None:
    PlaceCheck("bookings", "bookings", 3, 9, HASH, metrics).check([key + b"\0sort\0member" for key in OWN[:10]])

    assert misplaced(metrics) == 0


def test_a_misplaced_key_is_counted_each_time_and_logged_once(metrics: Metrics) -> None:
    check = PlaceCheck("bookings", "bookings", 3, 9, HASH, metrics)
    with capture_logs() as logs:
        check.check([*OWN[:10], FOREIGN[0]])
        check.check(FOREIGN[:2])

    assert misplaced(metrics) == 3
    assert len(logs) == 1
    assert "set `partitioner`" in logs[0]["event"]
    assert (logs[0]["partition"], logs[0]["belongs_to"]) == (3, partition_of(FOREIGN[0].decode(), 9))


def test_of_a_large_batch_about_a_hundred_keys_are_looked_at(metrics: Metrics) -> None:
    PlaceCheck("bookings", "bookings", 3, 9, HASH, metrics).check(FOREIGN)

    assert 100 <= (misplaced(metrics) or 0) < 200
