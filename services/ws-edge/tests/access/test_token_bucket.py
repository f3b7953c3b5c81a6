"""A token bucket allows a burst, and then its rate."""

from ws_edge.access.token_bucket import TokenBucket


def test_a_burst_may_be_taken_at_once_and_no_more() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)

    assert [bucket.take(0) for _ in range(4)] == [True, True, True, False]


def test_tokens_come_back_at_the_rate_up_to_the_burst() -> None:
    bucket = TokenBucket(rate=2, burst=3, now=0)
    for _ in range(3):
        bucket.take(0)

    assert [bucket.take(0.5), bucket.take(0.5)] == [True, False]
    assert not bucket.is_full(1.5)
    assert bucket.is_full(2.5)
    assert [bucket.take(1000) for _ in range(4)] == [True, True, True, False]
