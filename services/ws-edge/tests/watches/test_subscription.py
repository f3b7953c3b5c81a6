"""One subscription gets changes of its fields only, and knows whether it is up to date."""

import json
from dataclasses import replace

from testkit.ws_edge.answers import Asked, at, row, whole
from ws_edge.errors import UnavailableError
from ws_edge.model.json_rows import decode
from ws_edge.model.states import KeyState
from ws_edge.upstream.queries import Progress
from ws_edge.watches.token import Resumption

NAMES = ("a", "b")


def shown(offset: int, **values: int) -> KeyState:
    """Returns the row of a key with these values."""
    return replace(row("k1", offset), row=decode(json.dumps(values).encode()))


def test_a_change_of_no_field_that_is_told_is_no_news_and_brings_a_bookmark() -> None:
    asked = Asked(fields=NAMES)
    phone = asked.join()
    asked.answer(whole(shown(1, a=1, b=1, c=1), through=1))
    asked.answer(whole(shown(2, a=1, b=1, c=2), through=2))
    phone.token = asked.subscription.bookmark()

    assert phone.events == ["snapshot", "k1@1"]
    assert asked.resumption(phone) == Resumption(at(2))
    assert asked.subscription.bookmark() == ""


def test_it_is_blind_while_nobody_answers_and_while_answers_are_old() -> None:
    asked = Asked()
    asked.join()
    asked.clock.now += 4
    waiting = asked.subscription.blind_s(asked.clock.now)
    asked.answer(whole(row("k1", 1), through=1))
    seeing = asked.subscription.blind_s(asked.clock.now)
    watch, _ = asked.due()
    asked.hub.failed(watch, UnavailableError("away"))
    asked.clock.now += 5
    failing = asked.subscription.blind_s(asked.clock.now)
    watch, _ = asked.due()
    asked.hub.unchanged(watch, Progress(None, 12_000))
    lagging = asked.subscription.blind_s(asked.clock.now)

    assert waiting >= 4
    assert seeing == 0
    assert failing >= 5
    assert lagging == 12
