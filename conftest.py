"""Gives every test of the repository the fixtures and markers of the test kit, and the modules that suites share."""

import sys
from pathlib import Path

SHARED = ("", "tests/conformance", "tests/e2e", "tests/fuzz", "tests/contract", "tests/release", "infra/local/tests")

sys.path[:0] = [str(Path(__file__).parent / directory) for directory in SHARED]
pytest_plugins = ["testkit.pytest_plugin"]
