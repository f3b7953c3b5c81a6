"""Every client plays one scenario, `scenario.yaml`, as a process of its own against a real edge."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from testkit.push_player import PLAYERS
from testkit.push_stage import Stage, stage
from testkit.waiting import wait_until_async

SCENARIO = yaml.safe_load((Path(__file__).parents[1] / "scenario.yaml").read_text())
CHAPTERS = [
    pytest.param(each, id=each["name"], marks=[pytest.mark.long] if each.get("long") else [])
    for each in SCENARIO["chapters"]
]
LANGUAGES = [pytest.param(each, marks=[pytest.mark.stack] if each == "kotlin" else []) for each in PLAYERS]
"""The clients. Maven builds the one in Kotlin, so `make fast` leaves it out."""
HOLDS_S = 60.0
Rows = dict[str, Any]


class Reader:
    """Compares a client's rows, and the changes that it has reported, with the expectation of a step."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._held: dict[str, Rows] = {}
        self._read: Counter[str] = Counter()
        """How many changes of each watch have been compared."""

    def begin(self, name: str, *, saved: bool) -> None:
        """Notes that a watch begins, with its previous rows if `saved`, or with none."""
        self._read[name] = 0
        if not saved:
            self._held[name] = {}

    async def check(self, step: Mapping[str, Any]) -> None:
        """Waits until the client meets the step's expectation. Raises AssertionError with the difference."""
        differences: list[str] = []

        async def agrees() -> bool:
            watches = (await self._stage.state())["watches"]
            differences[:] = self._differences(step, watches)
            return not differences

        await wait_until_async(agrees, lambda: "\n".join(differences), HOLDS_S)
        for name, rows in step.get("holds", {}).items():
            self._read[name] += len(self._changes(name, rows, step))
            self._held[name] = rows

    def _differences(self, step: Mapping[str, Any], watches: Mapping[str, Any]) -> Iterator[str]:
        for name, rows in step.get("holds", {}).items():
            watch = watches[name]
            yield from difference(f"rows of {name}", watch["rows"], rows)
            yield from difference(f"{name} is current", watch["current"], True)
            new = watch["changes"][self._read[name] :]
            yield from difference(f"changes of {name}", ordered(new), ordered(self._changes(name, rows, step)))
        for name, rows in step.get("places", {}).items():
            yield from difference(
                f"places of {name}", {k: r for k, r in watches[name]["rows"].items() if "/" in k}, rows
            )
            for error in step.get("errors", {}).get(name, {}).items():
                yield from difference(f"{name} has told of {error}", [*error] in watches[name]["changes"], True)
        for mark in ("resumed", "ended"):
            for name, expected in step.get(mark, {}).items():
                yield from difference(f"{mark} of {name}", watches[name][mark], expected)

    def _changes(self, name: str, rows: Rows, step: Mapping[str, Any]) -> list[list[Any]]:
        """Returns the changes that lead from the rows held before to the rows."""
        held, errors = self._held[name], step.get("errors", {}).get(name, {})
        again = step.get("came", {}).get(name, ())
        came = [[key, row] for key, row in rows.items() if held.get(key) != row or key in again]
        return came + [[key, errors.get(key)] for key in held if key not in rows]


def difference(subject: str, actual: object, expected: object) -> Iterator[str]:
    if actual != expected:
        yield f"{subject}: {actual} and not {expected}"


def ordered(changes: list[list[Any]]) -> list[str]:
    return sorted(json.dumps(change, sort_keys=True) for change in changes)


EXPECTATIONS = {"holds", "places", "errors", "came", "resumed", "ended"}


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_client_holds_the_rows_of_the_scenario(
    language: str, chapter: Mapping[str, Any], tmp_path: Path
) -> None:
    async with stage(language, SCENARIO["stores"], chapter, tmp_path) as running:
        reader = Reader(running)
        for step in chapter["steps"]:
            for action, argument in step.items():
                if action in EXPECTATIONS:
                    continue
                verb = action.partition(" ")[0]
                await getattr(running, verb)(argument)
                for name, what in argument.items() if verb == "watch" else ():
                    reader.begin(name, saved=what.get("saved", False))
            await reader.check(step)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_through_random_changes_and_kills_a_client_ends_with_the_rows_of_the_store(
    language: str, tmp_path: Path
) -> None:
    chance = Random(7)
    places = {f"m{number}": {"match": f"m{number}"} for number in range(3)}
    stored: dict[str, Rows] = {match: {} for match in places}
    async with stage(language, SCENARIO["stores"], {}, tmp_path) as running:
        await running.put({"boards": {"football": places}})
        steps = [{"store": "boards", "group_field": "match"}]
        await running.watch({"board": {"store": "boards", "group": "football", "steps": steps}})
        for turn in range(150):
            match, key = chance.choice(list(stored)), chance.choice("abcd")
            row = None if key in stored[match] and chance.random() < 0.3 else {"turn": turn}
            await running.put({"boards": {match: {key: row}}})
            stored[match][key] = row
            if turn % 50 == 25:
                await running.kill(None)
                await running.start(None)
            elif chance.random() < 0.3:
                await running.state()  # so that the client reads some of it
        below = {f"{match}/{key}": row for match, rows in stored.items() for key, row in rows.items() if row}
        await Reader(running).check({"places": {"board": below}})
