"""Outages are logged once."""

from structlog.testing import capture_logs

from query_service.cluster.broker_thread import BrokerThread


def test_only_the_first_failure_and_the_first_answer_are_logged() -> None:
    with capture_logs() as lines:
        outage = BrokerThread("topic-watch", "topics", "127.0.0.1:9092")
        outage.answered()
        outage.failed("refused")
        outage.failed("refused again")
        outage.answered()
        outage.answered()

    assert [line["event"] for line in lines] == ["kafka does not answer; waiting for it", "kafka answers again"]
    assert lines[0]["reason"] == "refused"
    assert lines[0]["at"] == "127.0.0.1:9092"
