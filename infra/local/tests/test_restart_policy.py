"""When a process that ended is started again."""

from local_stack.restart_policy import RestartPolicy


def policy() -> RestartPolicy:
    return RestartPolicy(first_s=1, most_s=3, limit=5, window_s=60)


def test_pauses_double_up_to_the_longest() -> None:
    ends = policy()

    assert [ends.pause_after_end(now) for now in (0, 1, 2, 3)] == [1, 2, 3, 3]


def test_it_gives_up_at_the_limit_within_the_window() -> None:
    ends = policy()

    assert [ends.pause_after_end(now) is None for now in (0, 10, 20, 30, 59)] == [False, False, False, False, True]


def test_ends_before_the_window_do_not_count() -> None:
    ends = policy()
    for now in (0, 1, 2, 3):
        ends.pause_after_end(now)

    assert ends.pause_after_end(63) == 1
