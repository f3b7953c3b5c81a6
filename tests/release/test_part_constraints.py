"""Each part with an image has the constraints of its own requirements, and all services have the same Makefile."""

from pathlib import Path

import pytest

from testkit.constraints import part_constraints

ROOT = Path(__file__).parents[2]
SERVICES = sorted(path.parent for path in ROOT.glob("services/*/pyproject.toml"))


@pytest.mark.parametrize("folder", [*SERVICES, ROOT / "tools" / "jobs"], ids=lambda folder: folder.name)
def test_constraints_of_a_part_are_those_of_the_repository(folder: Path) -> None:
    """If this fails, run `make reference`."""
    assert (folder / "constraints.txt").read_text() == part_constraints(ROOT / "constraints.txt", folder)


def test_the_makefiles_of_all_services_are_the_same() -> None:
    assert len({(folder / "Makefile").read_text() for folder in SERVICES}) == 1


def test_only_what_a_part_and_its_tests_need_is_constrained(tmp_path: Path) -> None:
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("# Every version.\ngrpcio==1.85.1\ntyping_extensions==4.16.0\nwebsockets==17.4\nzope==1\n")
    project = '[project]\nname = "demo"\ndependencies = ["grpcio>=1"]\noptional-dependencies.test = ["websockets"]\n'
    (tmp_path / "pyproject.toml").write_text(project)

    lines = part_constraints(constraints, tmp_path).splitlines()
    assert lines[1:] == ["grpcio==1.85.1", "typing_extensions==4.16.0", "websockets==17.4"]
