"""Every program that a part installs reports its version and the version of its contract."""

import sys
from importlib.metadata import EntryPoint, distributions, version

import pytest

SERVICES = ("cdc-simulator", "query-service", "stream-processor", "ws-edge")
PROGRAMS = {
    program.name: (each.name, program)
    for each in distributions()
    if each.name.startswith("statecast-") or each.name in SERVICES
    for program in each.entry_points
    if program.group == "console_scripts"
}


@pytest.mark.parametrize(("part", "program"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_tells_its_version(
    part: str, program: EntryPoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [program.name, "--version"])
    with pytest.raises(SystemExit) as end:
        program.load()()

    line = capsys.readouterr().out
    assert end.value.code == 0
    assert line.startswith(f"{program.name} {version(part)} (")
    assert f"contract {version('statecast-contract')}" in line
