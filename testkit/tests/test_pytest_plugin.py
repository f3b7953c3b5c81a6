"""The markers of tests that need much."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
@pytest.fixture
def kafka(): ...
@pytest.fixture
def topics(kafka): ...
"""
TESTS = """
def test_plain(): ...
def test_with_a_broker(kafka): ...
def test_with_topics(topics): ...
"""


def selected(pytester: pytest.Pytester, *arguments: str) -> set[str]:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    result = pytester.runpytest("-p", "testkit.pytest_plugin", "--collect-only", "-q", *arguments)
    return {line.partition("::")[2] for line in result.outlines if "::" in line}


def test_tests_are_marked_by_the_fixtures_that_they_use_themselves_or_through_others(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_it=TESTS)

    assert selected(pytester, "-m", "not kafka") == {"test_plain"}
    assert selected(pytester, "-m", "kafka") == {"test_with_a_broker", "test_with_topics"}


def test_tests_of_a_module_that_starts_large_processes_are_marked(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_browser="from testkit.chromium import chromium\ndef test_page(): ...", test_it="def test_plain(): ..."
    )

    assert selected(pytester, "-m", "not stack") == {"test_plain"}


def test_figures_are_printed_at_the_end_where_there_are_any(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(
        test_it="def test_measures(figures): figures.append('ready after 3 s')", test_plain="def test_plain(): ..."
    )
    both, plain = (pytester.runpytest("-p", "testkit.pytest_plugin", *files) for files in ([], ["test_plain.py"]))

    both.stdout.fnmatch_lines(["*= figures =*", "ready after 3 s"])
    plain.stdout.no_fnmatch_line("*= figures =*")


def test_the_time_that_a_test_may_take_is_stretched(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("testkit.waiting.TIMEOUT_SCALE", 3)
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\ntimeout = 20")
    pytester.makepyfile(
        "import pytest\n"
        "def limit_s(request): return request.node.get_closest_marker('timeout').args[0]\n"
        "def test_as_any(request): assert limit_s(request) == 60\n"
        "@pytest.mark.timeout(100)\n"
        "def test_long(request): assert limit_s(request) == 300\n"
    )

    pytester.runpytest("-p", "testkit.pytest_plugin").assert_outcomes(passed=2)


STARTS_A_CHILD = """
import signal, subprocess, sys

SIGNALS = signal.SIGINT, signal.SIGQUIT, signal.SIGTERM
CHILD = "import signal, sys; print([n for n in sys.argv[1:] if signal.getsignal(int(n)) is signal.SIG_IGN])"

def test_starts_a_child():
    child = [sys.executable, "-c", CHILD, *(str(int(each)) for each in SIGNALS)]
    ignored = subprocess.run(child, capture_output=True, text=True).stdout
    for each in SIGNALS:
        signal.raise_signal(each)

    assert ignored == "[]\\n"
"""


def test_what_tests_start_heeds_signals_that_a_background_job_ignores(tmp_path: Path) -> None:
    (tmp_path / "test_child.py").write_text(STARTS_A_CHILD)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "testkit.pytest_plugin", "-c", os.devnull, str(tmp_path)]

    shell = ["bash", "-c", 'trap "" INT QUIT TERM; exec "$@"', "bash", *tests]
    run = subprocess.run(shell, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stdout
