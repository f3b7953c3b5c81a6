"""Items go out together or alone, and no caller suffers from another."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress

import pytest

from statecast.coalescing import Coalescer


class Upstream:
    """Answers with the item, `alone` or `together`, once the gate is open."""

    def __init__(self, **limits: float) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.singles: list[str] = []
        self.batches: list[list[str]] = []
        self.failure: Exception | None = None
        defaults = {"max_batch": 100, "max_in_flight": 4}
        self.coalescer = Coalescer(self._alone, self._together, **(defaults | limits))  # type: ignore[arg-type]

    async def ask(self, item: str, group: str = "g") -> str:
        return await self.coalescer.result(group, item)

    async def asked(self, *items: str) -> "list[asyncio.Task[str]]":
        """Asks for all in one turn, and returns when they have gone out."""
        tasks = [asyncio.create_task(self.ask(item)) for item in items]
        await turns()
        return tasks

    async def _alone(self, _: str, item: str) -> str:
        self.singles.append(item)
        await self.gate.wait()
        return f"{item} alone"

    async def _together(self, _: str, items: Sequence[str]) -> Sequence[str | Exception | None]:
        self.batches.append(list(items))
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [answer_of(item) for item in items]


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def answer_of(item: str) -> str | Exception | None:
    if item.startswith("bad"):
        return ValueError(item)
    return None if item.startswith("single") else f"{item} together"


async def test_one_that_is_alone_in_its_turn_is_a_batch_of_its_own() -> None:
    upstream = Upstream()

    assert [await upstream.ask("a"), await upstream.ask("b")] == ["a together", "b together"]
    assert upstream.batches == [["a"], ["b"]]


async def test_those_of_one_turn_go_together() -> None:
    upstream = Upstream()

    assert [*await asyncio.gather(*map(upstream.ask, "abc"))] == ["a together", "b together", "c together"]
    assert [sorted(batch) for batch in upstream.batches] == [["a", "b", "c"]]
    assert upstream.singles == []


async def test_each_group_goes_by_itself() -> None:
    upstream = Upstream()
    answers = await asyncio.gather(upstream.ask("a", "one"), upstream.ask("b", "two"))

    assert [*answers] == ["a together", "b together"]
    assert sorted(upstream.batches) == [["a"], ["b"]]


async def test_each_caller_has_its_own_error_and_a_single_lookup_where_a_batch_cannot_do() -> None:
    upstream = Upstream()
    answers = await asyncio.gather(*map(upstream.ask, ("a", "bad", "single")), return_exceptions=True)

    assert [str(answer) for answer in answers] == ["a together", "bad", "single alone"]
    assert isinstance(answers[1], ValueError)


async def test_a_batch_that_fails_fails_for_each_caller_with_an_error_of_its_own() -> None:
    upstream = Upstream()
    upstream.failure = ValueError("all of it")
    one, other = await asyncio.gather(*map(upstream.ask, "ab"), return_exceptions=True)

    assert (str(one), str(other)) == ("all of it", "all of it")
    assert one is not other


async def test_later_ones_gather_while_calls_are_in_flight() -> None:
    upstream = Upstream(max_in_flight=1, max_wait_s=60)
    upstream.gate.clear()
    tasks = await upstream.asked("a")
    tasks += await upstream.asked("b")
    tasks += await upstream.asked("c")
    assert upstream.batches == [["a"]]
    upstream.gate.set()

    assert await asyncio.gather(*tasks) == ["a together", "b together", "c together"]
    assert upstream.batches == [["a"], ["b", "c"]]


async def test_a_call_that_hangs_holds_up_later_ones_for_a_moment_only() -> None:
    upstream = Upstream(max_in_flight=1, max_wait_s=0.001)
    upstream.gate.clear()
    tasks = await upstream.asked("a")
    tasks += await upstream.asked("b")
    async with asyncio.timeout(10):
        while len(upstream.batches) < 2:  # noqa: ASYNC110  a batch tells nobody
            await asyncio.sleep(0.001)
    upstream.gate.set()

    assert await asyncio.gather(*tasks) == ["a together", "b together"]


async def test_no_batch_is_larger_than_the_limit() -> None:
    upstream = Upstream(max_batch=2)
    answers = await asyncio.gather(*map(upstream.ask, "abcde"))

    assert answers == [f"{item} together" for item in "abcde"]
    assert [len(batch) for batch in upstream.batches] == [2, 2, 1]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_caller_that_is_cancelled_before_they_go_out_is_left_out(place: int) -> None:
    upstream = Upstream()
    tasks = [asyncio.create_task(upstream.ask(item)) for item in "abc"]
    await asyncio.sleep(0)
    tasks[place].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(answers.pop(place), asyncio.CancelledError)
    assert answers == [f"{item} together" for item in "abc" if item != "abc"[place]]
    assert "abc"[place] not in upstream.batches[0]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_caller_that_is_cancelled_in_flight_cancels_no_other(place: int) -> None:
    upstream = Upstream()
    upstream.gate.clear()
    tasks = await upstream.asked("a", "b", "c")
    tasks[place].cancel()
    await asyncio.sleep(0)
    upstream.gate.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert isinstance(answers.pop(place), asyncio.CancelledError)
    assert answers == [f"{item} together" for item in "abc" if item != "abc"[place]]


async def test_those_who_wait_go_out_when_the_lone_call_before_them_is_cancelled() -> None:
    upstream = Upstream(max_in_flight=1, max_wait_s=60)
    upstream.gate.clear()
    [first] = await upstream.asked("a")
    others = await upstream.asked("b", "c")
    first.cancel()
    upstream.gate.set()

    assert await asyncio.gather(*others) == ["b together", "c together"]


async def test_nothing_goes_out_when_all_callers_have_gone() -> None:
    upstream = Upstream()
    futures = [upstream.coalescer.result("g", item) for item in "abc"]
    for future in futures:
        future.cancel()
    await turns()

    assert upstream.batches == []
    assert await upstream.ask("d") == "d together"


@pytest.mark.parametrize("item", ["a", "single"])
async def test_a_caller_that_goes_away_ends_the_call_that_is_its_own(item: str) -> None:
    upstream = Upstream()
    if item == "a":
        upstream.gate.clear()
    future = upstream.coalescer.result("g", item)
    await turns()
    upstream.gate.clear()
    await turns()
    future.cancel()
    await turns()

    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_closing_cancels_the_callers_of_a_batch_in_flight() -> None:
    upstream = Upstream()
    upstream.gate.clear()
    tasks = await upstream.asked("a", "b")
    upstream.coalescer.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(answer) for answer in answers] == [asyncio.CancelledError] * 2


async def test_the_error_of_a_batch_is_copied_for_each_caller() -> None:
    failure = ValueError("all of it")

    async def alone(_group: str, item: str) -> str:
        return item

    async def together(_group: str, _items: Sequence[str]) -> Sequence[str | Exception | None]:
        raise failure

    coalescer = Coalescer(alone, together, max_batch=2, max_in_flight=1)
    results = (coalescer.result("g", item) for item in "ab")
    errors = await asyncio.gather(*results, return_exceptions=True)

    assert [(type(error), str(error)) for error in errors] == [(ValueError, "all of it")] * 2
    assert errors[0] is not errors[1]


class Moody:
    """Takes its time, fails now and then, and answers some items of a batch with an error or not at all."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.coalescer = Coalescer(self._alone, self._together, max_batch=5, max_in_flight=2, max_wait_s=0.001)

    async def pause(self) -> None:
        for _ in range(self.chance.randrange(4)):
            await asyncio.sleep(0)
        if self.chance.random() < 0.1:
            await asyncio.sleep(0.002)

    async def _alone(self, group: str, item: str) -> str:
        await self._work()
        return item + group

    async def _together(self, group: str, items: Sequence[str]) -> Sequence[str | Exception | None]:
        await self._work()
        return [self.chance.choice((item + group, item + group, ValueError(item), None)) for item in items]

    async def _work(self) -> None:
        await self.pause()
        if self.chance.random() < 0.1:
            raise ValueError


@pytest.mark.parametrize("seed", range(4))
async def test_every_caller_has_its_answer_whoever_fails_or_goes_away(seed: int) -> None:
    moody = Moody(seed)

    async def caller(name: str) -> None:
        for number in range(30):
            await moody.pause()
            group, item = moody.chance.choice("xy"), f"{name}.{number}"
            with suppress(ValueError):
                assert await moody.coalescer.result(group, item) == item + group

    callers = [asyncio.create_task(caller(str(number))) for number in range(30)]
    for task in callers[::3]:
        await moody.pause()
        task.cancel()
    async with asyncio.timeout(120):
        results = await asyncio.gather(*callers, return_exceptions=True)

    assert [result for number, result in enumerate(results) if number % 3] == [None] * 20
