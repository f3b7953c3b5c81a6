"""Derives the constraints of each part from those of the repository: `python -m testkit.constraints FILE FOLDER...`.

A part's `constraints.txt` has the lines of FILE that the part and its tests need, so its folder can be built alone.
"""

import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HEAD = "# Made of the constraints.txt of the repository by `make reference`: what this part and its tests need.\n"


def part_constraints(constraints: Path, folder: Path) -> str:
    """Returns the text of a part's file. Raises PackageNotFoundError for a requirement that is not installed."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {})
    needed = _closure([*project["dependencies"], *(each for group in extras.values() for each in group)])
    lines = [line for line in constraints.read_text().splitlines() if not line.startswith("#")]
    kept = [line for line in lines if canonicalize_name(line.partition("==")[0]) in needed]
    return HEAD + "".join(f"{line}\n" for line in kept)


def _closure(requirements: Iterable[str]) -> set[str]:
    """Returns the names of all distributions that the requirements need, by the metadata of installed ones."""
    waiting, seen = list(_applying(requirements, "")), set[tuple[str, str]]()
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) not in seen:
            seen.add((name, extra))
            waiting += _applying(requires(name) or (), extra)
    return {name for name, _ in seen}


def _applying(requirements: Iterable[str], extra: str) -> Iterator[tuple[str, str]]:
    """Yields the name of each requirement that applies here, also once with each of its extras."""
    for requirement in map(Requirement, requirements):
        if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
            name = canonicalize_name(requirement.name)
            yield from ((name, each) for each in ("", *requirement.extras))


def main(arguments: Sequence[str]) -> None:
    """Writes the constraints of each folder."""
    constraints, *folders = map(Path, arguments)
    for folder in folders:
        (folder / "constraints.txt").write_text(part_constraints(constraints, folder))


if __name__ == "__main__":
    main(sys.argv[1:])
