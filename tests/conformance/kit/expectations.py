"""Compares the results that were seen with those that a case expects."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kit.case import Case
from kit.domain_files import store_of, topic_of

SHOWN = 3
"""How many rows that differ are shown."""


@dataclass
class Observed:
    """The results that were seen, of all cases together."""

    rows: Mapping[str, Mapping[str, object] | str] = field(default_factory=dict)
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    letters: Mapping[str, Sequence[str]] = field(default_factory=dict)
    log: str = ""
    doctor: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The lines of the doctor, by the case."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """The refusals of `statecast import`, by the case."""


def problems(case: Case, observed: Observed) -> list[str]:
    """Returns the results that are not as the case says, but for the doctor's lines and counts."""
    return [
        *_stores(case, observed),
        *_letters(case, observed),
        *(f"the log does not say {text!r}" for text in case.expect.log if text not in observed.log),
        *_refusal(case, observed),
    ]


def undiagnosed(case: Case, observed: Observed) -> Iterator[str]:
    """Yields the lines that the doctor should have said and has not."""
    lines = observed.doctor.get(case.name, ())
    for text in case.expect.doctor:
        if not any(text in line for line in lines):
            yield f"the doctor does not say {text!r}, but {[line for line in lines if case.identifier in line][:8]}"


def miscounts(case: Case, observed: Observed) -> list[str]:
    """Returns the outcomes that are not those that the case says, of the pipelines for which it says counts."""
    found = []
    for name, expected in case.expect.outcomes.items():
        counts = observed.outcomes.items()
        seen = {outcome: count for (each, outcome), count in counts if each == store_of(case, name) and count}
        if seen != expected:
            found.append(f"{name} has counted {seen}, not {expected}")
    return found


def _stores(case: Case, observed: Observed) -> Iterator[str]:
    for name, expected in case.expect.stores.items():
        rows = observed.rows.get(store_of(case, name), "it was not read")
        if isinstance(rows, str):
            yield f"the store {name} cannot be read: {rows}"
            continue
        seen, wanted = plain(rows), plain(expected)
        wrong = [key for key in sorted(seen.keys() | wanted.keys()) if seen.get(key) != wanted.get(key)]
        if wrong:
            shown = [f"{key}: {json.dumps(seen.get(key, 'absent'), ensure_ascii=False)}" for key in wrong[:SHOWN]]
            yield f"{name} has {len(seen)} rows, of which {len(wrong)} differ from the {len(wanted)} expected: {shown}"


def plain(rows: Mapping[str, object] | Mapping[str | int, object]) -> dict[str, object]:
    """Returns the rows with whole numbers as text, as JSON has those of 64 bits."""

    def texts(value: object) -> object:
        match value:
            case bool():
                return value
            case int():
                return str(value)
            case dict():
                return {name: texts(each) for name, each in value.items()}
            case list():
                return [texts(each) for each in value]
        return value

    return {str(key): texts(value) for key, value in rows.items()}


def _letters(case: Case, observed: Observed) -> Iterator[str]:
    prefix = topic_of(case, "")
    own = {name.removeprefix(prefix): list(each) for name, each in observed.letters.items() if name.startswith(prefix)}
    expected = {f"{name}.dead-letter": texts for name, texts in case.expect.dead_letters.items()}
    for name in sorted(own.keys() | expected.keys()):
        reasons, texts = own.get(name, []), expected.get(name, [])
        if len(reasons) != len(texts) or not _each_fits(texts, reasons):
            yield f"{name} has {len(reasons)} letters, not {len(texts)}: {[each[:300] for each in reasons[:SHOWN]]}"


def _each_fits(texts: Sequence[str], reasons: Sequence[str]) -> bool:
    """Returns whether each text is in a reason of its own: letters come in any order, as several tasks write them."""
    text_of: dict[int, int] = {}

    def place(text: int, tried: set[int]) -> bool:
        for number in [each for each, reason in enumerate(reasons) if texts[text] in reason and each not in tried]:
            tried.add(number)
            if number not in text_of or place(text_of[number], tried):
                text_of[number] = text
                return True
        return False

    return all(place(text, set()) for text in range(len(texts)))


def _refusal(case: Case, observed: Observed) -> Iterator[str]:
    refused = case.expect.refused
    said = observed.log if refused and refused.at == "start" else observed.refusals.get(case.name, "")
    if refused is None:
        if said:
            yield f"it is refused: {said}"
        return
    lines = [line for line in said.splitlines() if refused.at != "start" or store_of(case, "") in line]
    for text in refused.says:
        if not any(text in line for line in lines):
            yield f"{refused.at} does not say {text!r}, but {[line[:400] for line in lines[:SHOWN]]}"
