"""The bar of a restore."""

from io import StringIO

from query_service.cluster.restore_bar import RestoreBar, bar
from query_service.cluster.restore_watch import Restoring


def test_it_says_how_far_the_restore_is_and_how_long_it_still_takes() -> None:
    assert bar(Restoring(done=300_000, total=1_200_000, seconds=2, partitions=4)) == (
        "restoring 4 partitions [#######.......................]  25% 300,000 of 1,200,000 records, 150,000/s, 6 s left"
    )


def test_it_promises_nothing_before_the_first_record() -> None:
    assert bar(Restoring(done=0, total=10, seconds=0, partitions=1)).endswith("0 of 10 records, 0/s")
    assert bar(Restoring(done=0, total=0, seconds=1, partitions=1)).count("#") == 30


def test_it_draws_over_its_own_line_and_takes_it_away() -> None:
    terminal = StringIO()
    drawn = RestoreBar(terminal)
    drawn.show(Restoring(1, 2, 1, 1))
    drawn.clear()

    assert terminal.getvalue().startswith("\x1b[Krestoring 1 partitions [")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert "\n" not in terminal.getvalue()
