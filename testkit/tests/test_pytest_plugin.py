"""The markers of tests that need much."""

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
