"""How much and how often."""

import httpx

from testkit.gateway_under_test import GatewayUnderTest
from testkit.waiting import scaled

ALICE = {"apikey": "alice-demo-key"}
TRIAL = {"apikey": "trial-demo-key"}
LIMIT = 64 * 1024


def post(gateway: GatewayUnderTest, body: bytes, *, announced: bool, **headers: str) -> httpx.Response:
    content = body if announced else iter([body[:1000], body[1000:]])
    return httpx.post(gateway.http + "/v1/x", headers=ALICE | headers, content=content, timeout=scaled(30))


def test_a_body_of_the_limit_passes(gateway: GatewayUnderTest) -> None:
    assert post(gateway, bytes(LIMIT), announced=True).json()["body"] == LIMIT
    assert post(gateway, bytes(LIMIT), announced=False).json()["body"] == LIMIT


def test_a_body_over_the_limit_is_refused(gateway: GatewayUnderTest) -> None:
    for announced in (True, False):
        answer = post(gateway, bytes(LIMIT + 1), announced=announced)

        assert answer.status_code == 413
        assert answer.json()["message"] == "Request size limit exceeded"


def test_a_body_that_waits_for_leave_is_refused_before_it_is_sent(gateway: GatewayUnderTest) -> None:
    assert post(gateway, bytes(LIMIT + 1), announced=True, Expect="100-continue").status_code == 417


def test_answers_say_how_many_requests_are_left(gateway: GatewayUnderTest) -> None:
    headers = gateway.get("/v1/x", ALICE).headers

    assert headers["ratelimit-limit"] == headers["x-ratelimit-limit-minute"] == "60000"
    assert int(headers["ratelimit-remaining"]) == int(headers["x-ratelimit-remaining-minute"]) < 60000
    assert 1 <= int(headers["ratelimit-reset"]) <= 60


def test_who_asks_too_often_is_told_when_to_come_back(gateway: GatewayUnderTest) -> None:
    # Twice the limit and one: a new minute may begin once on the way.
    answers = [gateway.get("/v1/x", TRIAL) for _ in range(41)]
    refused = next(answer for answer in answers if answer.status_code != 200)

    assert refused.status_code == 429
    assert refused.json()["message"] == "API rate limit exceeded"
    assert refused.headers["retry-after"] == refused.headers["ratelimit-reset"]
    assert 1 <= int(refused.headers["retry-after"]) <= 60
    assert refused.headers["ratelimit-remaining"] == "0"
    assert answers[0].headers["ratelimit-limit"] == "20"


def test_others_are_not_held_up(gateway: GatewayUnderTest) -> None:
    for _ in range(41):
        gateway.get("/v1/x", TRIAL)

    assert gateway.get("/v1/x", ALICE).status_code == 200
